// Python's "..." % values, and Python's formatting of numbers. Pure functions; only one thread may use a budget.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

// Returns `format` % `values`, where `values` is a tuple, a dict for %(name)s, or a single value. Throws EvalError.
std::string PercentFormat(Budget& budget, std::string_view format, const Value& values);

// A format specification: [[fill]align][sign][#][0][width][grouping][.precision][type].
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // one of < > ^ =, or '\0' for the default of the type
  char sign = '-';
  bool alternate = false;
  char grouping = '\0';    // ',' or '_', or '\0' for none
  int64_t width = 0;       // in code points
  int64_t precision = -1;  // -1: not given
  char type = '\0';
};
// Returns the sign and digits of `value`, formatted by spec.type: e, E, f, F, g, G or %. Does not group or pad.
// REQUIRES: spec.precision <= kMaxPrecision.
std::string FormatReal(double value, const FormatSpec& spec);
// Returns the sign, prefix and digits of `value`, formatted by spec.type: d, x, X, o or b. Adds zeros up to
// spec.precision digits, at most kMaxPrecision. Does not group the digits or pad to spec.width.
std::string FormatInteger(int64_t value, const FormatSpec& spec);
// Groups the digits of a formatted number and pads it to spec.width.
std::string PadNumber(std::string digits, const FormatSpec& spec);

inline constexpr int64_t kMaxPrecision = 400;

}  // namespace vllm::tokenizer::jinja
