// Copies text to the user's clipboard. Writes to the terminal and runs programs; main thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vllm::app {

// The longest text that CopyToClipboard sends to a terminal: some terminals ignore a sequence of over 100,000 bytes.
inline constexpr size_t kMaxTerminalClipboardBytes = 74'994;

// Copies `text`, which may be untrusted, with every means there is: the terminal's clipboard (OSC 52) if standard
// output is a terminal, and wl-copy, xclip or pbcopy if there is a display and the program is installed. Returns what
// was done, such as "12 bytes sent to the terminal's clipboard (OSC 52)". A terminal does not tell whether it obeys.
// Throws ResourceError `cannot copy <n> bytes: <why>`.
std::string CopyToClipboard(std::string_view text);

}  // namespace vllm::app
