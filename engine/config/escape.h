// Escape makes untrusted bytes, such as names from a file, printable in error messages. Error messages of the engine
// escape everything that comes from outside. Pure function; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vllm {

// Returns `text` with control characters, C1 controls and invalid UTF-8 written as \xNN. A result longer than max_bytes
// is cut and ends in "...".
std::string Escape(std::string_view text, size_t max_bytes = 200);

}  // namespace vllm
