// Formats and parses dates, always in the C locale. Pure functions; any thread.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace vllm::tokenizer::jinja {

// The longest result of one directive, in bytes.
inline constexpr size_t kMaxDirectiveBytes = 128;

// Formats like Python's datetime.strftime for a time without a time zone: supports the directives, flags and widths of
// the C library, and %f. Copies a directive unchanged if the C library does not know it or its result is longer than
// kMaxDirectiveBytes.
std::string Strftime(std::string_view format, const std::tm& time);

// Parses "2024-07-26", "2024-07-26T15:04:05" or "2024-07-26 15:04:05". Returns false if `text` has another format or is
// not a valid time.
bool ParseDate(std::string_view text, std::tm& time);

}  // namespace vllm::tokenizer::jinja
