// LinkUri: the target of a hyperlink that may be sent to a terminal (OSC 8). It has a scheme that is safe to open, and
// only printable ASCII characters. A plain value; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vllm::app {

class LinkUri {
 public:
  // Returns the URI of an http, https or mailto link, with other bytes than printable ASCII percent-encoded. Returns
  // nullopt for other schemes, for more than 2,000 bytes, for control characters, spaces and backslashes, which
  // browsers interpret in different ways, and for an empty host.
  static std::optional<LinkUri> Parse(std::string_view untrusted);

  const std::string& text() const { return text_; }
  // The host, in lower case and without user name and port; of a mailto link, the part after the last '@'. Labels that
  // are not ASCII are shown in Punycode (RFC 3492), because letters of other scripts can look like ASCII letters.
  const std::string& host() const { return host_; }

 private:
  std::string text_;
  std::string host_;
};

// Returns one label of a host name in Punycode, with the prefix "xn--". An ASCII label is returned unchanged.
// Ill-formed UTF-8 counts as U+FFFD.
std::string PunycodeLabel(std::string_view label);

}  // namespace vllm::app
