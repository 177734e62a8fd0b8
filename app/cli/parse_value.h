// Parses numbers, sizes and lists from the command line or a file. Each Parse function consumes the whole string or
// throws ConfigError `<why> (<text>)`. NaN and infinity are rejected. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm::app {

int64_t ParseInteger(std::string_view text);
uint64_t ParseUnsigned(std::string_view text);
double ParseNumber(std::string_view text);
// Parses a number of bytes: "512M", "2Gi", "1000000". K, M, G and T are powers of 1000; Ki, Mi, Gi and Ti are powers of
// 1024. A trailing B is allowed.
int64_t ParseSize(std::string_view text);
// Appends the ids of "1,2,3", with or without spaces and brackets.
void ParseIds(std::string_view text, std::vector<int32_t>& ids);
// Parses "ID=V".
std::pair<int32_t, float> ParseBias(std::string_view text);
// Parses "true" or "false".
bool ParseSwitch(std::string_view text);
// Returns `text` if it is one of `choices`, which are written "a|b|c".
std::string ParseChoice(std::string_view text, std::string_view choices);

// Returns the candidate nearest to `name`, for "did you mean", or an empty string if none is close. A candidate is
// close if it is at most one edit away, or two if `name` has six or more characters. Names of fewer than 2 or more than
// 64 characters have no close candidates. Leading dashes and slashes are ignored.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace vllm::app
