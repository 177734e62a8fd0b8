// Python's "..." % values, and its formatting of numbers. Pure functions; one thread per budget.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

// Returns `format` % `values`, where `values` is a tuple, a dict for %(name)s, or a single value. Throws EvalError.
std::string PercentFormat(Budget& budget, std::string_view format, const Value& values);

// A format specification: [[fill]align][sign][#][0][width][,][.precision][type].
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // one of < > ^ =, or '\0' for the default of the type
  char sign = '-';
  bool alternate = false;
  char grouping = '\0';
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};
// Formats like printf's %e, %f and %g, with Python's rules for the number of digits.
std::string FormatReal(double value, const FormatSpec& spec);
std::string FormatInteger(int64_t value, const FormatSpec& spec);
// Groups the digits and pads the number to the width of the field.
std::string PadNumber(std::string digits, const FormatSpec& spec);

inline constexpr int64_t kMaxPrecision = 400;

}  // namespace vllm::tokenizer::jinja
