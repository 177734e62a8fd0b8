// String algorithms that methods and filters share. Pure functions; only one thread may use a budget.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/values/budget.h"

namespace vllm::tokenizer::jinja {

// str.split and str.rsplit. A null separator splits at runs of whitespace; a negative `max_splits` means no limit.
// Throws EvalError if the separator is empty.
std::vector<std::string_view> SplitText(Budget& budget, std::string_view text, const std::string* separator,
                                        int64_t max_splits, bool from_right);
// str.replace. A negative `count` replaces all occurrences.
std::string ReplaceText(Budget& budget, std::string_view text, std::string_view from, std::string_view to,
                        int64_t count);
// Pads `text` to `width` code points with `fill`, which is one code point. `side` is where the text goes: -1 left, 1
// right, 0 centered like str.center.
std::string PadText(std::string_view text, int64_t width, std::string_view fill, int side);
// Appends \xhh, \uhhhh or \Uhhhhhhhh, as Python's repr writes a character that is not printable.
void AppendEscape(char32_t code_point, std::string& text);
// str.isupper if `upper` is true, otherwise str.islower.
bool HasOnlyCase(std::string_view text, bool upper);
// float(text) and int(text, base), for ASCII digits only. They return false if `text` is not a number or `base` is
// invalid. ParseInteger throws EvalError if the integer does not fit in 64 bits.
bool ParseFloat(std::string_view text, double& value);
bool ParseInteger(std::string_view text, int64_t base, int64_t& value);

}  // namespace vllm::tokenizer::jinja
