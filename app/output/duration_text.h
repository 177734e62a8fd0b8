// Formats durations for display. A pure function; any thread.
#pragma once

#include <chrono>
#include <string>

namespace vllm::app {

// Returns "21 s", "2 min 5 s" or "1 h 2 min", rounded down. A negative time counts as 0.
std::string DurationText(std::chrono::milliseconds time);

}  // namespace vllm::app
