#include "app/http/url.h"

#include <curl/curl.h>

#include <memory>

namespace vllm::app {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using UrlHandle = std::unique_ptr<CURLU, FreeUrl>;

// Returns a part of a URL, or nullopt if the URL does not have it.
std::optional<std::string> PartOf(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK || text == nullptr) return std::nullopt;
  const std::unique_ptr<char, decltype(&curl_free)> owner(text, &curl_free);
  return std::string(text);
}

std::optional<UrlOrigin> OriginOf(CURLU* url) {
  if (PartOf(url, CURLUPART_USER) || PartOf(url, CURLUPART_PASSWORD)) return std::nullopt;
  const std::optional<std::string> scheme = PartOf(url, CURLUPART_SCHEME);
  const std::optional<std::string> host = PartOf(url, CURLUPART_HOST);
  const std::optional<std::string> port = PartOf(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (!scheme || (*scheme != "http" && *scheme != "https") || !host || host->empty() || !port) return std::nullopt;
  UrlOrigin origin{*scheme, *host, *port};
  for (char& c : origin.host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return origin;
}

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::string Encoded(std::string_view text, bool keeps_slashes) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (IsUnreserved(c) || (keeps_slashes && c == '/')) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  return out;
}

}  // namespace

bool UrlOrigin::is_loopback() const {
  if (host == "localhost" || host == "[::1]") return true;
  // "127." alone would also match the name 127.example.org.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
}

std::optional<UrlOrigin> OriginOf(const std::string& url) {
  const UrlHandle handle(curl_url());
  if (handle == nullptr || curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return std::nullopt;
  return OriginOf(handle.get());
}

std::optional<std::string> RedirectTarget(const std::string& base, const std::string& location) {
  const UrlHandle handle(curl_url());
  if (handle == nullptr || curl_url_set(handle.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const std::optional<UrlOrigin> from = OriginOf(handle.get());
  if (curl_url_set(handle.get(), CURLUPART_URL, location.c_str(), CURLU_URLENCODE) != CURLUE_OK) return std::nullopt;
  const std::optional<UrlOrigin> to = OriginOf(handle.get());
  if (!from || !to || (from->is_https() && !to->is_https())) return std::nullopt;
  curl_url_set(handle.get(), CURLUPART_FRAGMENT, nullptr, 0);
  return PartOf(handle.get(), CURLUPART_URL);
}

std::string PercentEncoded(std::string_view text) { return Encoded(text, false); }
std::string PercentEncodedPath(std::string_view path) { return Encoded(path, true); }

}  // namespace vllm::app
