#include "tokenizer/jinja/builtins/builtin_tests.h"

#include "tokenizer/jinja/builtins/filters.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/string_operations.h"

namespace vllm::tokenizer::jinja {
namespace {

using Test = bool (*)(Runtime& runtime, const Value& value, const Args& args);

void TakesNothing(const Args& args) { const BoundArgs none("test", args, {}); }

template <bool (*Predicate)(const Value&)>
bool Plain(Runtime&, const Value& value, const Args& args) {
  TakesNothing(args);
  return Predicate(value);
}

bool IsDefined(const Value& value) { return !value.is_undefined(); }
bool IsUndefined(const Value& value) { return value.is_undefined(); }
bool IsNone(const Value& value) { return value.is(Kind::kNone); }
bool IsBoolean(const Value& value) { return value.is(Kind::kBool); }
bool IsTrue(const Value& value) { return value.is(Kind::kBool) && value.boolean(); }
bool IsFalse(const Value& value) { return value.is(Kind::kBool) && !value.boolean(); }
bool IsInteger(const Value& value) { return value.is(Kind::kInt); }
bool IsFloat(const Value& value) { return value.is(Kind::kFloat); }
bool IsNumber(const Value& value) { return value.is_number(); }
bool IsString(const Value& value) { return value.is_string(); }
bool IsMapping(const Value& value) { return value.is(Kind::kDict); }
bool IsEscaped(const Value& value) { return value.is_markup(); }
bool IsSequence(const Value& value) {
  return value.is_string() || value.is_sequence() || value.is(Kind::kDict) || value.is(Kind::kRange) ||
         value.is_undefined();
}
bool IsCallable(const Value& value) {
  return value.is(Kind::kMacro) || value.is(Kind::kFunction) || value.is(Kind::kLoop) || value.is(Kind::kJoiner) ||
         value.is_undefined();
}

template <bool kUpper>
bool HasCase(Runtime& runtime, const Value& value, const Args& args) {
  TakesNothing(args);
  return HasOnlyCase(Str(runtime.budget, value), kUpper);
}

bool Modulo(Runtime& runtime, const Value& value, const Value& divisor, int64_t rest) {
  return Equals(runtime.budget, Arithmetic(runtime.budget, Op::kMod, value, divisor), Value::Int(rest));
}
template <int kRest>
bool Parity(Runtime& runtime, const Value& value, const Args& args) {
  TakesNothing(args);
  return Modulo(runtime, value, Value::Int(2), kRest);
}
bool IsDivisibleBy(Runtime& runtime, const Value& value, const Args& args) {
  const BoundArgs bound("divisibleby", args, {"num"}, 1);
  return Modulo(runtime, value, *bound[0], 0);
}

template <Op kOp>
bool Compare(Runtime& runtime, const Value& value, const Args& args) {
  const BoundArgs bound("comparison test", args, {"other"}, 1);
  return CompareValues(runtime.budget, kOp, value, *bound[0]);
}

bool IsSameAs(Runtime&, const Value& value, const Args& args) {
  const BoundArgs bound("sameas", args, {"other"}, 1);
  const Value& other = *bound[0];
  if (value.kind() != other.kind()) return false;
  if (value.is(Kind::kNone)) return true;
  if (value.is_integer()) return value.integer() == other.integer();
  if (value.is_string() && value.text() == other.text() && value.text().size() < 2) return true;
  return value.object() != nullptr && value.object() == other.object();
}

bool IsFilterName(Runtime&, const Value& value, const Args& args) {
  TakesNothing(args);
  return value.is_string() && IsFilter(value.text());
}
bool IsTestName(Runtime&, const Value& value, const Args& args) {
  TakesNothing(args);
  return value.is_string() && IsTest(value.text());
}

struct NamedTest {
  std::string_view name;
  Test test;
};

constexpr NamedTest kTests[] = {
    {"defined", Plain<IsDefined>},
    {"undefined", Plain<IsUndefined>},
    {"none", Plain<IsNone>},
    {"string", Plain<IsString>},
    {"mapping", Plain<IsMapping>},
    {"iterable", Plain<IsIterable>},
    {"sequence", Plain<IsSequence>},
    {"number", Plain<IsNumber>},
    {"boolean", Plain<IsBoolean>},
    {"true", Plain<IsTrue>},
    {"false", Plain<IsFalse>},
    {"integer", Plain<IsInteger>},
    {"float", Plain<IsFloat>},
    {"callable", Plain<IsCallable>},
    {"escaped", Plain<IsEscaped>},
    {"odd", Parity<1>},
    {"even", Parity<0>},
    {"divisibleby", IsDivisibleBy},
    {"lower", HasCase<false>},
    {"upper", HasCase<true>},
    {"sameas", IsSameAs},
    {"filter", IsFilterName},
    {"test", IsTestName},
    {"in", Compare<Op::kIn>},
    {"==", Compare<Op::kEq>},
    {"eq", Compare<Op::kEq>},
    {"equalto", Compare<Op::kEq>},
    {"!=", Compare<Op::kNe>},
    {"ne", Compare<Op::kNe>},
    {">", Compare<Op::kGt>},
    {"gt", Compare<Op::kGt>},
    {"greaterthan", Compare<Op::kGt>},
    {">=", Compare<Op::kGe>},
    {"ge", Compare<Op::kGe>},
    {"<", Compare<Op::kLt>},
    {"lt", Compare<Op::kLt>},
    {"lessthan", Compare<Op::kLt>},
    {"<=", Compare<Op::kLe>},
    {"le", Compare<Op::kLe>},
};

Test FindTest(std::string_view name) {
  for (const NamedTest& entry : kTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace

bool IsTest(std::string_view name) { return FindTest(name) != nullptr; }

bool CallTest(Runtime& runtime, std::string_view name, const Value& value, const Args& args) {
  const Test test = FindTest(name);
  if (test == nullptr) throw EvalError("no test named '" + std::string(name.substr(0, 40)) + "'");
  runtime.budget.Spend(4);
  return test(runtime, value, args);
}

}  // namespace vllm::tokenizer::jinja
