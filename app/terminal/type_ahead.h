// Keys that the user typed while an answer was printed, and that the next prompt is to read. Global; main thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::app {

// Appends bytes that were read from the terminal.
void KeepTypedKeys(std::string_view keys);
// Returns and forgets the kept bytes.
std::string TakeTypedKeys();

}  // namespace vllm::app
