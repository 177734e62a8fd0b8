// strftime in the C locale, whatever locale the program runs in. Pure function, any thread.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace vllm::jinja {

// Python's datetime.strftime of a naive time: the directives, flags and widths of the C library, and %f. A directive
// that the C library does not know, or that gives more than kMaxDirectiveBytes, is copied unchanged.
inline constexpr size_t kMaxDirectiveBytes = 128;
std::string Strftime(std::string_view format, const std::tm& time);

// "2024-07-26" or "2024-07-26T15:04:05" (also with a blank); false when it is neither.
bool ParseDate(std::string_view text, std::tm& time);

}  // namespace vllm::jinja
