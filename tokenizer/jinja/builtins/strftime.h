// strftime in the C locale, whatever locale the program runs in. Pure function, any thread.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace vllm::jinja {

// Knows the directives of C99 and the "-" flag (no padding); others are copied as they are.
std::string Strftime(std::string_view format, const std::tm& time);

// "2024-07-26" or "2024-07-26T15:04:05" (also with a blank); false when it is neither.
bool ParseDate(std::string_view text, std::tm& time);

}  // namespace vllm::jinja
