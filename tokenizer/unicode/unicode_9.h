// The code points that Unicode 9 had given a script: some components of the reference still live by that version or one
// close to it, whatever the installed libraries know. Pure functions, any thread.
#pragma once

#include <functional>

namespace vllm {

// Calls range(first, last) for each run of them. Private use areas have no script.
void ForEachRangeOfUnicode9(const std::function<void(char32_t, char32_t)>& range);

}  // namespace vllm
