#include "app/http/http_head.h"

#include <curl/curl.h>

#include <algorithm>

namespace vllm::app {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::string Lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Returns the value of the parameter ";t=42" of a structured header, or nullopt.
std::optional<int64_t> ParameterOf(std::string_view header, std::string_view name) {
  for (size_t begin = header.find(';'); begin != std::string_view::npos; begin = header.find(';', begin + 1)) {
    const std::string_view parameter =
        Trimmed(header.substr(begin + 1, header.find_first_of(";,", begin + 1) - begin - 1));
    const size_t equals = parameter.find('=');
    if (equals == std::string_view::npos || Trimmed(parameter.substr(0, equals)) != name) continue;
    return ParseDecimal(Trimmed(parameter.substr(equals + 1)));
  }
  return std::nullopt;
}

}  // namespace

bool HttpHead::AddLine(std::string_view line) {
  num_bytes_ += line.size();
  if (num_bytes_ > kMaxBytes) return false;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  headers_.emplace_back(Lowered(Trimmed(line.substr(0, colon))), Trimmed(line.substr(colon + 1)));
  return true;
}

bool HttpHead::is_redirect() const {
  return status_ == 301 || status_ == 302 || status_ == 303 || status_ == 307 || status_ == 308;
}

bool HttpHead::is_temporary_failure() const {
  return status_ == 408 || status_ == 429 || (status_ >= 500 && status_ <= 599);
}

const std::string* HttpHead::Find(std::string_view name) const {
  const std::string lower = Lowered(name);
  for (const auto& [header, value] : headers_) {
    if (header == lower) return &value;
  }
  return nullptr;
}

std::string HttpHead::Value(std::string_view name) const {
  const std::string* value = Find(name);
  return value == nullptr ? "" : *value;
}

std::optional<int> ParseStatusLine(std::string_view line) {
  if (!line.starts_with("HTTP/")) return std::nullopt;
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> code = ParseDecimal(Trimmed(line.substr(space + 1, 3)));
  if (!code || *code < 100 || *code > 999) return std::nullopt;
  return static_cast<int>(*code);
}

std::optional<int64_t> ParseDecimal(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  int64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::string NextLink(std::string_view link) {
  // <https://...>; rel="next", <https://...>; rel="last"
  while (true) {
    const size_t begin = link.find('<');
    const size_t end = link.find('>', begin == std::string_view::npos ? 0 : begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) return "";
    const std::string_view url = link.substr(begin + 1, end - begin - 1);
    link.remove_prefix(end + 1);
    const std::string parameters = Lowered(link.substr(0, link.find('<')));
    if (parameters.find("rel=\"next\"") != std::string::npos || parameters.find("rel=next") != std::string::npos) {
      return std::string(url);
    }
  }
}

std::string BareEtag(std::string_view etag) {
  etag = Trimmed(etag);
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  text = Trimmed(text);
  if (!Lowered(text.substr(0, 6)).starts_with("bytes ")) return std::nullopt;
  text = Trimmed(text.substr(6));
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash) return std::nullopt;
  const std::optional<int64_t> first = ParseDecimal(text.substr(0, dash));
  const std::optional<int64_t> last = ParseDecimal(text.substr(dash + 1, slash - dash - 1));
  const std::string_view size_text = text.substr(slash + 1);
  const std::optional<int64_t> size = size_text == "*" ? std::optional<int64_t>(-1) : ParseDecimal(size_text);
  if (!first || !last || !size || *last < *first || (*size >= 0 && *last >= *size)) return std::nullopt;
  return ContentRange{*first, *last + 1, *size};
}

std::optional<std::chrono::seconds> RequestedWait(const HttpHead& head, std::chrono::system_clock::time_point now) {
  if (const std::string* after = head.Find("retry-after")) {
    if (const std::optional<int64_t> seconds = ParseDecimal(*after)) return std::chrono::seconds(*seconds);
    const time_t date = curl_getdate(after->c_str(), nullptr);
    if (date != -1) {
      const int64_t wait = static_cast<int64_t>(date) - std::chrono::system_clock::to_time_t(now);
      return std::chrono::seconds(std::max<int64_t>(0, wait));
    }
  }
  if (const std::string* limit = head.Find("ratelimit")) {
    // The remaining requests are not checked: after status 429 there are none.
    if (const std::optional<int64_t> seconds = ParameterOf(*limit, "t")) return std::chrono::seconds(*seconds);
  }
  if (const std::string* reset = head.Find("ratelimit-reset")) {
    if (const std::optional<int64_t> seconds = ParseDecimal(*reset)) return std::chrono::seconds(*seconds);
  }
  return std::nullopt;
}

}  // namespace vllm::app
