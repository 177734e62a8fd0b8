// Escape makes untrusted bytes, such as names from a file, safe to print in error messages. The engine's error messages
// escape everything that comes from outside. Pure function; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vllm {

// Returns `text` with C0 and C1 control characters, DEL and invalid UTF-8 written as \xNN. A result that would be
// longer than max_bytes is cut before the first character that does not fit, and ends in "...".
std::string Escape(std::string_view text, size_t max_bytes = 200);

}  // namespace vllm
