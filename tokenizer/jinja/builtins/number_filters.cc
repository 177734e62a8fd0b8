#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tokenizer/jinja/builtins/filters.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/string_operations.h"

namespace vllm::tokenizer::jinja {
namespace {

void RejectUndefined(const Value& input) {
  if (input.is_undefined()) throw EvalError(input.UndefinedMessage());
}

Value Truncated(double value) {
  if (std::isnan(value)) throw EvalError("cannot convert float NaN to integer");
  if (!(std::fabs(value) < 9.2e18)) throw EvalError("integer is out of range (64 bits)");
  return Value::Int(static_cast<int64_t>(value));
}

Value Int(Runtime&, const Value& input, const Args& args) {
  const BoundArgs bound("int", args, {"default", "base"});
  RejectUndefined(input);
  const Value fallback = bound[0] != nullptr ? *bound[0] : Value::Int(0);
  if (input.is_integer()) return Value::Int(input.integer());
  if (input.is(Kind::kFloat)) return std::isnan(input.real()) ? fallback : Truncated(input.real());
  if (!input.is_string()) return fallback;
  int64_t value = 0;
  if (ParseInteger(input.text(), bound.Int(1, 10), value)) return Value::Int(value);
  double real = 0;
  if (!ParseFloat(input.text(), real) || !std::isfinite(real)) return fallback;
  return Truncated(real);
}

Value Float(Runtime&, const Value& input, const Args& args) {
  const BoundArgs bound("float", args, {"default"});
  RejectUndefined(input);
  if (input.is_number()) return Value::Float(input.real());
  double value = 0;
  if (input.is_string() && ParseFloat(input.text(), value)) return Value::Float(value);
  return bound[0] != nullptr ? *bound[0] : Value::Float(0.0);
}

Value Abs(Runtime&, const Value& input, const Args& args) {
  const BoundArgs none("abs", args, {});
  RejectUndefined(input);
  if (input.is(Kind::kFloat)) return Value::Float(std::fabs(input.real()));
  if (!input.is_integer()) throw EvalError(std::string("bad operand type for abs(): ") + TypeName(input.kind()));
  return input.integer() < 0 ? Negate(input) : Value::Int(input.integer());
}

// Python's round(value, precision) for a float. For precision >= 0, rounds the exact binary value.
double RoundReal(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 330) return value;
  if (precision < -330) return std::copysign(0.0, value);
  if (precision >= 0) {
    std::array<char, 800> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(precision), value);
    return std::strtod(buffer.data(), nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / scale) * scale;
}

Value RoundInteger(int64_t value, int64_t precision) {
  if (precision >= 0) return Value::Int(value);
  int64_t scale = 1;
  for (int64_t i = 0; i < -precision; ++i) {
    if (__builtin_mul_overflow(scale, 10, &scale)) return Value::Int(0);
  }
  int64_t quotient = value / scale;
  const int64_t rest = std::llabs(value % scale);
  if (rest > scale - rest || (rest == scale - rest && quotient % 2 != 0)) quotient += value < 0 ? -1 : 1;
  int64_t result = 0;
  if (__builtin_mul_overflow(quotient, scale, &result)) throw EvalError("integer is out of range (64 bits)");
  return Value::Int(result);
}

Value Round(Runtime&, const Value& input, const Args& args) {
  const BoundArgs bound("round", args, {"precision", "method"});
  RejectUndefined(input);
  const std::string method = bound[1] == nullptr ? "common" : bound.Text(1);
  if (method != "common" && method != "ceil" && method != "floor") {
    throw EvalError("round: method must be common, ceil or floor");
  }
  if (!input.is_number()) throw EvalError(std::string("round needs a number, not ") + TypeName(input.kind()));
  const int64_t precision = bound.Int(0, 0);
  if (method == "common") {
    if (input.is_integer()) return RoundInteger(input.integer(), precision);
    return Value::Float(RoundReal(input.real(), precision));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = input.real() * scale;
  return Value::Float((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value FileSizeFormat(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("filesizeformat", args, {"binary"});
  RejectUndefined(input);
  double bytes = 0;
  if (input.is_number()) {
    bytes = input.real();
  } else if (!input.is_string() || !ParseFloat(input.text(), bytes)) {
    throw EvalError("filesizeformat needs a number");
  }
  std::array<char, 400> buffer{};  // the largest double has 309 digits
  const bool binary = bound.Bool(0, false);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return MakeString(&runtime.budget, "1 Byte");
  if (bytes < base) {
    if (std::isinf(bytes)) throw EvalError("filesizeformat cannot convert infinity to an integer");
    std::snprintf(buffer.data(), buffer.size(), "%.0f Bytes", std::trunc(bytes) + 0.0);
    return MakeString(&runtime.budget, buffer.data());
  }
  static constexpr const char* kBinary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  static constexpr const char* kDecimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  // On Linux, x86-64 and AArch64 have a long double with a mantissa of at least 64 bits, so 1000^9 is exact until it is
  // converted to double. Python uses integers here.
  long double power = static_cast<long double>(base) * base;
  size_t index = 0;
  for (; index < 7 && !(bytes < static_cast<double>(power)); ++index) power *= base;
  const auto unit = static_cast<double>(power);
  std::snprintf(buffer.data(), buffer.size(), "%.1f %s", base * bytes / unit,
                binary ? kBinary[index] : kDecimal[index]);
  return MakeString(&runtime.budget, buffer.data());
}

constexpr NamedFilter kFilters[] = {
    {"int", Int}, {"float", Float}, {"abs", Abs}, {"round", Round}, {"filesizeformat", FileSizeFormat},
};

}  // namespace

Filter FindNumberFilter(std::string_view name) {
  for (const NamedFilter& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace vllm::tokenizer::jinja
