#include "app/hub/model_reference.h"

#include <algorithm>
#include <array>
#include <vector>

#include "app/hub/hub_endpoint.h"
#include "app/hub/repository_path.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxReferenceBytes = 2048;
constexpr size_t kMaxTagBytes = 96;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool StartsWithIgnoringCase(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char a, char b) { return Lower(a) == Lower(b); });
}

bool EndsWithIgnoringCase(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && StartsWithIgnoringCase(text.substr(text.size() - suffix.size()), suffix);
}

bool IsGgufPath(std::string_view path) { return EndsWithIgnoringCase(path, ".gguf") && IsSafeRepositoryPath(path); }

std::string_view WithoutScheme(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (StartsWithIgnoringCase(url, scheme)) return url.substr(scheme.size());
  }
  return url;
}

// Removes the host of the hub and the path that HF_ENDPOINT may have. Returns false if `text` does not begin with them.
bool RemoveHost(std::string_view& text) {
  std::string endpoint;
  try {
    endpoint = WithoutScheme(HubEndpoint());
  } catch (const ConfigError&) {
    // A request reports the invalid variable. A reference can still name the public hub.
  }
  for (const std::string_view host : {std::string_view("huggingface.co"), std::string_view("www.huggingface.co"),
                                      std::string_view("hf.co"), std::string_view(endpoint)}) {
    if (host.empty() || !StartsWithIgnoringCase(text, host)) continue;
    if (text.size() == host.size() || text[host.size()] != '/') continue;
    text.remove_prefix(host.size() + 1);
    return true;
  }
  return false;
}

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> segments;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    segments.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return segments;
}

std::string Join(const std::vector<std::string_view>& segments, size_t begin) {
  std::string path;
  for (size_t i = begin; i < segments.size(); ++i) {
    if (i > begin) path += '/';
    path += segments[i];
  }
  return path;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = Lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Decodes %XX. Leaves a '%' that two hexadecimal digits do not follow.
std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 && HexDigit(text[i + 2]) >= 0;
    if (!is_escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(16 * HexDigit(text[i + 1]) + HexDigit(text[i + 2]));
    i += 2;
  }
  return out;
}

bool IsTag(std::string_view tag) {
  if (IsGgufPath(tag)) return true;
  if (tag.empty() || tag.size() > kMaxTagBytes) return false;
  return std::all_of(tag.begin(), tag.end(), [](char c) {
    return (Lower(c) >= 'a' && Lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

// Parses the part of a URL after OWNER/NAME: "tree", "blob" or "resolve", a revision and a path. REQUIRES: segments[2]
// is one of these words.
std::optional<ModelReference> ParsePage(ModelReference reference, const std::vector<std::string_view>& segments) {
  if (segments.size() < 4) return std::nullopt;
  const bool is_file = segments[2] != "tree";
  // A slash in a revision is written as %2F, except in refs/pr/N and refs/convert/NAME.
  const bool is_ref =
      segments.size() >= 6 && segments[3] == "refs" && (segments[4] == "pr" || segments[4] == "convert");
  const size_t path_begin = is_ref ? 6 : 4;
  std::vector<std::string_view> revision(segments.begin() + 3, segments.begin() + static_cast<ptrdiff_t>(path_begin));
  reference.revision = PercentDecoded(Join(revision, 0));
  if (!IsRevision(reference.revision)) return std::nullopt;
  if (!is_file) return reference;
  reference.tag = PercentDecoded(Join(segments, path_begin));
  if (!IsGgufPath(reference.tag)) return std::nullopt;
  return reference;
}

}  // namespace

std::optional<ModelReference> ParseModelReference(std::string_view text) {
  if (text.size() > kMaxReferenceBytes) return std::nullopt;
  const std::string_view without_scheme = WithoutScheme(text);
  const bool has_scheme = without_scheme.size() != text.size();
  std::string_view rest = without_scheme;
  const bool has_host = RemoveHost(rest);
  if (has_scheme && !has_host) return std::nullopt;
  if (has_host) {
    rest = rest.substr(0, rest.find_first_of("?#"));
    while (rest.ends_with('/')) rest.remove_suffix(1);
  }

  ModelReference reference;
  // The first colon, because the path of a file may follow it.
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    reference.tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!IsTag(reference.tag) || !IsRepositoryId(rest)) return std::nullopt;
    reference.repo_id = rest;
    return reference;
  }
  if (IsRepositoryId(rest)) {
    // Without a host, this is more likely the path of a file that does not exist.
    if (!has_host && EndsWithIgnoringCase(rest, ".gguf")) return std::nullopt;
    reference.repo_id = rest;
    return reference;
  }
  const std::vector<std::string_view> segments = Split(rest);
  if (segments.size() < 3) return std::nullopt;
  reference.repo_id = std::string(segments[0]) + "/" + std::string(segments[1]);
  if (!IsRepositoryId(reference.repo_id)) return std::nullopt;
  if (has_host && (segments[2] == "tree" || segments[2] == "blob" || segments[2] == "resolve")) {
    return ParsePage(reference, segments);
  }
  reference.tag = Join(segments, 2);
  if (!IsGgufPath(reference.tag)) return std::nullopt;
  return reference;
}

std::string ToString(const ModelReference& reference) {
  return reference.tag.empty() ? reference.repo_id : reference.repo_id + ":" + reference.tag;
}

}  // namespace vllm::app
