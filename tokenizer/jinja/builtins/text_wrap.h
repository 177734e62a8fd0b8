// Python's textwrap.wrap, as the filter wordwrap calls it: tabs and other white space stay what they are.
// Pure functions on one budget.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/values/budget.h"

namespace vllm::jinja {

struct WrapStyle {
  int64_t width = 79;  // in code points
  bool break_long_words = true;
  bool break_on_hyphens = true;
};

// The lines of one paragraph. Throws EvalError when the width is not positive.
std::vector<std::string> WrapText(Budget& budget, std::string_view paragraph, const WrapStyle& style);

}  // namespace vllm::jinja
