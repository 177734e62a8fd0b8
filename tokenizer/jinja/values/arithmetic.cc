#include <cmath>
#include <limits>

#include "tokenizer/jinja/values/format.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/text.h"

namespace vllm::jinja {
namespace {

[[noreturn]] void FailOperands(Op op, const Value& a, const Value& b) {
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) throw EvalError(side->UndefinedMessage());
  }
  static constexpr const char* kNames[] = {"+", "-", "*", "/", "//", "%", "**"};
  throw EvalError(std::string("unsupported operand types for ") + kNames[static_cast<size_t>(op)] + ": '" +
                  TypeName(a.kind()) + "' and '" + TypeName(b.kind()) + "'");
}

[[noreturn]] void FailOverflow() { throw EvalError("integer is out of range (64 bits)"); }

Value IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) throw EvalError("0 cannot be raised to a negative power");
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  // Square and multiply; a square that overflows is an error only when it is needed.
  bool base_overflow = false;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      if (base_overflow || __builtin_mul_overflow(result, base, &result)) FailOverflow();
    }
    if (!base_overflow && __builtin_mul_overflow(base, base, &base)) base_overflow = true;
  }
  return Value::Int(result);
}

Value Integers(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &result)) FailOverflow();
      return Value::Int(result);
    case Op::kSub:
      if (__builtin_sub_overflow(a, b, &result)) FailOverflow();
      return Value::Int(result);
    case Op::kMul:
      if (__builtin_mul_overflow(a, b, &result)) FailOverflow();
      return Value::Int(result);
    case Op::kPow:
      return IntegerPower(a, b);
    default:
      break;
  }
  if (b == 0) throw EvalError("division by zero");
  if (op == Op::kDiv) return Value::Float(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) {
    if (__builtin_sub_overflow(int64_t{0}, a, &result)) FailOverflow();
    return Value::Int(op == Op::kMod ? 0 : result);
  }
  const bool inexact = a % b != 0 && ((a % b < 0) != (b < 0));
  return op == Op::kMod ? Value::Int(a % b + (inexact ? b : 0)) : Value::Int(a / b - (inexact ? 1 : 0));
}

Value Reals(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Value::Float(a + b);
    case Op::kSub:
      return Value::Float(a - b);
    case Op::kMul:
      return Value::Float(a * b);
    case Op::kPow: {
      if (a == 0 && b < 0) throw EvalError("0 cannot be raised to a negative power");
      if (a < 0 && std::isfinite(b) && b != std::floor(b)) throw EvalError("power of a negative number is complex");
      const double result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
        throw EvalError("result is too large for a float");
      return Value::Float(result);
    }
    default:
      break;
  }
  if (b == 0) throw EvalError("division by zero");
  if (op == Op::kDiv) return Value::Float(a / b);
  // CPython's float_divmod.
  double mod = std::fmod(a, b);
  double quotient = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      quotient -= 1.0;
    }
  } else {
    mod = std::copysign(0.0, b);
  }
  if (op == Op::kMod) return Value::Float(mod);
  if (quotient == 0) return Value::Float(std::copysign(0.0, a / b));
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1.0;
  return Value::Float(floored);
}

Value AddTexts(Budget& budget, const Value& a, const Value& b) {
  Budget::CheckText(a.text().size() + b.text().size());
  const bool markup = a.is_markup() || b.is_markup();
  if (!markup) {
    std::string text;
    text.reserve(a.text().size() + b.text().size());
    text += a.text();
    text += b.text();
    return MakeString(&budget, std::move(text));
  }
  const auto part = [](const Value& value) { return value.is_markup() ? value.text() : EscapeHtml(value.text()); };
  return MakeString(&budget, part(a) + part(b), true);
}

Value Repeat(Budget& budget, const Value& sequence, int64_t count) {
  const size_t times = count > 0 ? static_cast<size_t>(count) : 0;
  if (sequence.is_string()) {
    const std::string& unit = sequence.text();
    if (!unit.empty() && times > Budget::kMaxTextBytes / unit.size()) Budget::CheckText(Budget::kMaxTextBytes + 1);
    std::string text;
    text.reserve(unit.size() * times);
    if (!unit.empty()) {
      for (size_t i = 0; i < times; ++i) text += unit;
    }
    budget.Spend(unit.empty() ? 1 : 1 + times / 8);
    return MakeString(&budget, std::move(text), sequence.is_markup());
  }
  const std::vector<Value>& unit = sequence.items();
  std::vector<Value> items;
  if (!unit.empty()) {
    if (times > Budget::kLiveBytes / sizeof(Value) / unit.size()) budget.CheckRoom(Budget::kLiveBytes + 1);
    budget.CheckRoom(times * unit.size() * sizeof(Value));
    budget.Spend(1 + times * unit.size() / 2);
    items.reserve(times * unit.size());
    for (size_t i = 0; i < times; ++i) items.insert(items.end(), unit.begin(), unit.end());
  }
  return MakeSequence(&budget, sequence.kind(), std::move(items));
}

}  // namespace

Value Arithmetic(Budget& budget, Op op, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return Integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return Reals(op, a.real(), b.real());
  if (op == Op::kAdd) {
    if (a.is_string() && b.is_string()) return AddTexts(budget, a, b);
    if (a.is(Kind::kBytes) && b.is(Kind::kBytes)) return MakeBytes(&budget, a.text() + b.text());
    if (a.is_sequence() && a.kind() == b.kind()) {
      budget.CheckRoom((a.items().size() + b.items().size()) * sizeof(Value));
      budget.Spend((a.items().size() + b.items().size()) / 2);
      std::vector<Value> items;
      items.reserve(a.items().size() + b.items().size());
      items.insert(items.end(), a.items().begin(), a.items().end());
      items.insert(items.end(), b.items().begin(), b.items().end());
      return MakeSequence(&budget, a.kind(), std::move(items));
    }
  }
  if (op == Op::kMul) {
    if ((a.is_string() || a.is_sequence()) && b.is_integer()) return Repeat(budget, a, b.integer());
    if ((b.is_string() || b.is_sequence()) && a.is_integer()) return Repeat(budget, b, a.integer());
  }
  if (op == Op::kMod && a.is_string()) {
    return MakeString(&budget, PercentFormat(budget, a.text(), b), a.is_markup());
  }
  FailOperands(op, a, b);
}

Value Negate(const Value& value) {
  if (value.is_integer()) {
    if (value.integer() == std::numeric_limits<int64_t>::min()) FailOverflow();
    return Value::Int(-value.integer());
  }
  if (value.is(Kind::kFloat)) return Value::Float(-value.real());
  if (value.is_undefined()) throw EvalError(value.UndefinedMessage());
  throw EvalError(std::string("bad operand type for unary -: '") + TypeName(value.kind()) + "'");
}

}  // namespace vllm::jinja
