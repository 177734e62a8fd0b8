// String algorithms that methods and filters share. Pure functions on one budget.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/values/budget.h"

namespace vllm::jinja {

// str.split / str.rsplit; a null separator splits at runs of whitespace. Negative `max_splits`: no limit.
std::vector<std::string_view> SplitText(Budget& budget, std::string_view text, const std::string* separator,
                                        int64_t max_splits, bool from_right);
// str.replace; negative `count`: all.
std::string ReplaceText(Budget& budget, std::string_view text, std::string_view from, std::string_view to,
                        int64_t count);
// Pads to `width` code points; side -1: text at the left, 1: at the right, 0: centred as str.center does.
std::string PadText(std::string_view text, int64_t width, std::string_view fill, int side);
// str.isupper / str.islower.
bool HasOnlyCase(std::string_view text, bool upper);
// float(text) and int(text, base); false when Python raises ValueError.
bool ParseFloat(std::string_view text, double& value);
bool ParseInteger(std::string_view text, int64_t base, int64_t& value);

}  // namespace vllm::jinja
