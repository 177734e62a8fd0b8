// Formats sizes, counts and other numbers for display. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vllm::app {

std::string SizeText(int64_t bytes);   // "7.6 MB"
std::string CountText(int64_t count);  // "3.81 M"
// Returns "1 step" or "1,200 steps": `noun` gets an s unless the count is 1.
std::string CountedText(int64_t count, std::string_view noun);
// Returns "31 %" for 0.31, "3.1 %" for 0.031 and "0 %" for 0: one decimal between 0 and 10 %.
std::string PercentText(double share);
// Returns a number with `digits` decimals; "-" if it is not finite.
std::string FixedText(double value, int digits);

}  // namespace vllm::app
