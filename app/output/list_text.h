// Formats entries of lists for display. Pure functions of their arguments and the time zone; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vllm::app {

// Returns the local time such as "2026-11-23 14:05". `ms` counts from 1970.
std::string LocalTimeText(int64_t ms);

// Returns the first line of `text`, cut to at most `max_characters` characters; "…" marks a cut.
std::string FirstLine(std::string_view text, size_t max_characters);

// Returns `text` with each run of spaces, tabs and line breaks as one space, without those at the ends.
std::string OneLine(std::string_view text);

}  // namespace vllm::app
