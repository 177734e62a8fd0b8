// Escape makes bytes from a file fit to stand in an error message. A pure function; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vllm {

// Control bytes, C1 controls and whatever is not UTF-8 become \xNN; text longer than max_bytes ends in "...".
std::string Escape(std::string_view text, size_t max_bytes = 200);

}  // namespace vllm
