// Formats sizes and counts for display. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace vllm::app {

std::string SizeText(int64_t bytes);   // "7.6 MB"
std::string CountText(int64_t count);  // "3.81 M"

}  // namespace vllm::app
