// Numbers, sizes and lists as people write them on a command line or in a file. Each function takes the whole text or
// throws ConfigError `<why> (<text>)`; NaN and infinity are never numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm {

int64_t ParseInteger(std::string_view text);
uint64_t ParseUnsigned(std::string_view text);
double ParseNumber(std::string_view text);
// "512M", "2Gi", "1000000": bytes; K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024, a final B is allowed.
int64_t ParseSize(std::string_view text);
// "1,2,3" with or without spaces and brackets; appends.
void ParseIds(std::string_view text, std::vector<int32_t>& ids);
// "ID=V"
std::pair<int32_t, float> ParseBias(std::string_view text);
// "true", "false"
bool ParseSwitch(std::string_view text);
// One of "a|b|c".
std::string ParseChoice(std::string_view text, std::string_view choices);

// The candidate that is most like `name`, for "did you mean"; empty when none is close. Close is one edit, or two for
// names of six or more letters. Leading dashes and slashes do not count.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace vllm
