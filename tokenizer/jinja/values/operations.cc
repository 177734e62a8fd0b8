#include "tokenizer/jinja/values/operations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tokenizer/jinja/values/format.h"
#include "tokenizer/jinja/values/text.h"

namespace vllm::tokenizer::jinja {
namespace {

bool NumbersEqual(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  return a.real() == b.real();
}

[[noreturn]] void FailOrder(const Value& a, const Value& b) {
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) throw EvalError(side->UndefinedMessage());
  }
  throw EvalError(std::string("'<' not supported between '") + TypeName(a.kind()) + "' and '" + TypeName(b.kind()) +
                  "'");
}

bool SameItems(Budget& budget, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Equals(budget, a[i], b[i])) return false;
  }
  return true;
}

// Compares two views of keys(), or two of items(), as sets. Views of values() are equal only if they are the same
// object.
bool SameViews(Budget& budget, const SequenceObject& a, const SequenceObject& b) {
  const std::string_view label = a.label;
  if (label != b.label || label == "dict_values") return &a == &b;
  if (a.items.size() != b.items.size()) return false;
  return std::all_of(a.items.begin(), a.items.end(), [&](const Value& item) {
    return std::any_of(b.items.begin(), b.items.end(), [&](const Value& other) { return Equals(budget, item, other); });
  });
}

bool SameDicts(Budget& budget, const DictObject& a, const DictObject& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    budget.Spend(8);
    const Value* other = b.Find(key);
    if (other == nullptr || !Equals(budget, value, *other)) return false;
  }
  return true;
}

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
  // Square and multiply. The base may overflow as long as no later step multiplies by it.
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
      if (a < 0 && std::isfinite(b) && b != std::floor(b))
        throw EvalError("fractional power of a negative number is complex");
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
  // Follows CPython's float_divmod.
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
    if (times > Budget::kLiveBytes / sizeof(Value) / unit.size()) budget.CheckMemory(Budget::kLiveBytes + 1);
    budget.CheckMemory(times * unit.size() * sizeof(Value));
    budget.Spend(1 + times * unit.size() / 2);
    items.reserve(times * unit.size());
    for (size_t i = 0; i < times; ++i) items.insert(items.end(), unit.begin(), unit.end());
  }
  return MakeSequence(&budget, sequence.kind(), std::move(items));
}

}  // namespace

void EndIterator(SequenceObject& iterator) {
  if (iterator.failure.empty()) return;
  const std::string failure = std::exchange(iterator.failure, "");
  throw EvalError(failure);
}

bool Truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.real() != 0;
    default:
      break;
  }
  const std::optional<int64_t> length = value.is_string() ? std::nullopt : Length(value);
  return value.is_string() ? !value.text().empty() : !length || *length != 0;
}

bool Equals(Budget& budget, const Value& a, const Value& b) {
  budget.Spend(1);
  if (a.is_number() && b.is_number()) return NumbersEqual(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kMissing:
    case Kind::kNone:
      return true;
    case Kind::kString:
      if (a.text().size() != b.text().size()) return false;
      budget.SpendBytes(a.text().size());
      return a.text() == b.text();
    case Kind::kBytes:
      budget.SpendBytes(a.text().size());
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
      return SameItems(budget, a.items(), b.items());
    case Kind::kDict:
      return SameDicts(budget, a.dict(), b.dict());
    case Kind::kDictView:
      return SameViews(budget, a.as<SequenceObject>(), b.as<SequenceObject>());
    case Kind::kRange: {
      const int64_t length = a.range().length();
      if (length != b.range().length()) return false;
      return length == 0 || (a.range().start == b.range().start && (length == 1 || a.range().step == b.range().step));
    }
    default:
      return a.object() == b.object();
  }
}

bool Less(Budget& budget, const Value& a, const Value& b) {
  budget.Spend(1);
  if (a.is_integer() && b.is_integer()) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.real() < b.real();
  if ((a.is_string() && b.is_string()) || (a.is(Kind::kBytes) && b.is(Kind::kBytes))) {
    budget.SpendBytes(std::min(a.text().size(), b.text().size()));
    return a.text() < b.text();  // UTF-8 bytes sort in code point order
  }
  if (!a.is_sequence() || a.kind() != b.kind()) FailOrder(a, b);
  const size_t common = std::min(a.items().size(), b.items().size());
  for (size_t i = 0; i < common; ++i) {
    if (!Equals(budget, a.items()[i], b.items()[i])) return Less(budget, a.items()[i], b.items()[i]);
  }
  return a.items().size() < b.items().size();
}

bool Contains(Budget& budget, const Value& item, const Value& container) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) {
        throw EvalError(std::string("'in <string>' needs a string, not ") + TypeName(item.kind()));
      }
      budget.SpendBytes(SearchCost(container.text(), item.text()));
      return FindText(container.text(), item.text()) != std::string_view::npos;
    case Kind::kBytes: {
      if (!item.is_integer() && !item.is(Kind::kBytes)) {
        throw EvalError(std::string("'in <bytes>' needs bytes or an integer, not ") + TypeName(item.kind()));
      }
      if (item.is_integer() && (item.integer() < 0 || item.integer() > 255)) {
        throw EvalError("byte must be in range(0, 256)");
      }
      const std::string part = item.is_integer() ? std::string(1, static_cast<char>(item.integer())) : item.text();
      budget.SpendBytes(SearchCost(container.text(), part));
      return FindText(container.text(), part) != std::string_view::npos;
    }
    case Kind::kDict:
      budget.Spend(8);
      return container.dict().Find(item) != nullptr;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDictView:
      return std::any_of(container.items().begin(), container.items().end(),
                         [&](const Value& other) { return Equals(budget, item, other); });
    case Kind::kRange: {
      if (!item.is_number()) return false;
      const double value = item.real();
      const RangeObject& range = container.range();
      if (!(value >= -9e15 && value <= 9e15) || value != static_cast<double>(static_cast<int64_t>(value))) return false;
      const int64_t offset = static_cast<int64_t>(value) - range.start;
      return offset % range.step == 0 && offset / range.step >= 0 && offset / range.step < range.length();
    }
    case Kind::kIterator: {
      auto& iterator = container.as<SequenceObject>();
      while (iterator.position < iterator.items.size()) {
        if (Equals(budget, item, iterator.items[iterator.position++])) return true;
      }
      EndIterator(iterator);
      return false;
    }
    case Kind::kUndefined:
      return false;
    default:
      throw EvalError(std::string("argument of type '") + TypeName(container.kind()) + "' is not iterable");
  }
}

bool CompareValues(Budget& budget, Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kEq:
      return Equals(budget, a, b);
    case Op::kNe:
      return !Equals(budget, a, b);
    case Op::kLt:
      return Less(budget, a, b);
    case Op::kGt:
      return Less(budget, b, a);
    case Op::kLe:
    case Op::kGe: {
      const bool less = op == Op::kLe ? Less(budget, a, b) : Less(budget, b, a);
      return less || Equals(budget, a, b);
    }
    case Op::kIn:
      return Contains(budget, a, b);
    default:
      return !Contains(budget, a, b);
  }
}

std::optional<int64_t> Length(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<int64_t>(value.is_ascii() ? value.text().size() : NumCodePoints(value.text()));
    case Kind::kBytes:
      return static_cast<int64_t>(value.text().size());
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDictView:
      return static_cast<int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict().items.size());
    case Kind::kRange:
      return value.range().length();
    default:
      return std::nullopt;
  }
}

bool IsIterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDictView:
    case Kind::kDict:
    case Kind::kRange:
    case Kind::kIterator:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

std::vector<Value> ToVector(Budget& budget, const Value& value) {
  std::vector<Value> result;
  const auto reserve = [&](size_t count) {
    budget.Spend(1 + count / 2);
    budget.CheckMemory(count * sizeof(Value));
    result.reserve(count);
  };
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDictView:
      reserve(value.items().size());
      result = value.items();
      break;
    case Kind::kIterator: {
      auto& iterator = value.as<SequenceObject>();
      reserve(iterator.items.size() - iterator.position);
      result.assign(iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.position), iterator.items.end());
      iterator.position = iterator.items.size();
      EndIterator(iterator);
      break;
    }
    case Kind::kDict:
      reserve(value.dict().items.size());
      for (const auto& item : value.dict().items) result.push_back(item.first);
      break;
    case Kind::kRange: {
      const int64_t length = value.range().length();
      reserve(static_cast<size_t>(length));
      for (int64_t i = 0; i < length; ++i) result.push_back(Value::Int(value.range().at(i)));
      break;
    }
    case Kind::kBytes:
      reserve(value.text().size());
      for (const char c : value.text()) result.push_back(Value::Int(static_cast<unsigned char>(c)));
      break;
    case Kind::kString: {
      const std::string& text = value.text();
      reserve(text.size());
      for (size_t i = 0; i < text.size();) {
        const size_t start = i;
        NextCodePoint(text, i);
        result.push_back(MakeString(&budget, text.substr(start, i - start)));
      }
      break;
    }
    default:
      throw EvalError(std::string("'") + TypeName(value.kind()) + "' object is not iterable");
  }
  return result;
}

Value Arithmetic(Budget& budget, Op op, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return Integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return Reals(op, a.real(), b.real());
  if (op == Op::kAdd) {
    if (a.is_string() && b.is_string()) return AddTexts(budget, a, b);
    if (a.is(Kind::kBytes) && b.is(Kind::kBytes)) return MakeBytes(&budget, a.text() + b.text());
    if (a.is_sequence() && a.kind() == b.kind()) {
      budget.CheckMemory((a.items().size() + b.items().size()) * sizeof(Value));
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

}  // namespace vllm::tokenizer::jinja
