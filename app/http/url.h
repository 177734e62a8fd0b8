// URLs: compares origins, resolves the target of a redirect and encodes paths. Parsing is libcurl's, so that a decision
// about a URL is about the host that libcurl connects to. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vllm::app {

// The part of a URL that decides who gets the request.
struct UrlOrigin {
  std::string scheme;  // "http" or "https"
  std::string host;    // in lower case
  std::string port;    // also if it is the scheme's default

  bool is_https() const { return scheme == "https"; }
  // Returns true for localhost, 127.0.0.0/8 and [::1].
  bool is_loopback() const;
  friend bool operator==(const UrlOrigin&, const UrlOrigin&) = default;
};

// Returns nullopt if `url` is not an absolute http or https URL, or if it contains a user name.
std::optional<UrlOrigin> OriginOf(const std::string& url);

// Returns the absolute URL of a Location header in a response from `base`, without its fragment. Returns nullopt if it
// is invalid, not http or https, or leads from https to http.
std::optional<std::string> RedirectTarget(const std::string& base, const std::string& location);

// Returns `text` with all bytes except A-Z a-z 0-9 - . _ ~ written as %XX.
std::string PercentEncoded(std::string_view text);
// The same, but keeps slashes.
std::string PercentEncodedPath(std::string_view path);

}  // namespace vllm::app
