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
// Returns "31 %", or "3.1 %" below 10 %, for a share of 0.31 or 0.031.
std::string PercentText(double share);
// Returns a number with `digits` decimals; "-" if it is not finite.
std::string FixedText(double value, int digits);

}  // namespace vllm::app
