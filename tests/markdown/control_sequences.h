// Checks that bytes for a terminal contain only control sequences of the table in styled_text.h.
#pragma once

#include <string>
#include <string_view>

#include "app/terminal/styled_text.h"

namespace vllm::app {

// Returns the control characters and sequences in `bytes` that the table does not have, or "" if there are none. Line
// feeds and tabs are allowed.
inline std::string UnknownSequences(std::string_view bytes) {
  std::string unknown;
  for (size_t i = 0; i < bytes.size();) {
    const std::string_view rest = bytes.substr(i);
    const auto byte = static_cast<unsigned char>(bytes[i]);
    size_t length = 0;
    if (rest.starts_with(sequences::kOpenLink)) {
      length = rest.find_first_not_of("0123456789", sequences::kOpenLink.size());
      const bool has_number = length != std::string_view::npos && length > sequences::kOpenLink.size();
      if (has_number && rest.substr(length).starts_with(sequences::kLinkSeparator)) {
        ++length;
        while (length < rest.size() && rest[length] > 0x20 && rest[length] < 0x7F) ++length;
        length = rest.substr(length).starts_with(sequences::kEndLink) ? length + sequences::kEndLink.size() : 0;
      } else {
        length = 0;
      }
    } else if (rest.starts_with("\r\x1b[K")) {
      length = 1;  // a carriage return only before the row is erased
    } else {
      for (const std::string_view sequence : sequences::kAll) {
        if (sequence != sequences::kEndLink && rest.starts_with(sequence)) length = sequence.size();
      }
    }
    const bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F ||
                            (byte == 0xC2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xA0);
    if (length == 0 && is_control) unknown += "at " + std::to_string(i) + ": " + std::to_string(byte) + "; ";
    i += length > 0 ? length : 1;
  }
  return unknown;
}

}  // namespace vllm::app
