// Escape makes untrusted bytes, such as names from a file, safe to print. Call it for each name or value from outside
// that an error message quotes. Pure function; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vllm {

// Returns `text` with C0 and C1 control characters, DEL and invalid UTF-8 written as \xNN. A result that would be
// longer than max_bytes is cut before the first character that does not fit, and "..." is appended.
std::string Escape(std::string_view text, size_t max_bytes = 200);

}  // namespace vllm
