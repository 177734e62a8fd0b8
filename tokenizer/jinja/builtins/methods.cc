#include "tokenizer/jinja/builtins/methods.h"

#include <algorithm>
#include <initializer_list>

#include "tokenizer/jinja/values/operations.h"

namespace vllm::tokenizer::jinja {
namespace {

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value DictMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args) {
  const DictObject& dict = self.dict();
  if (name == "get") {
    const BoundArgs bound("get", args, {"key", "default"}, 1);
    runtime.budget.Spend(4);
    const Value* found = dict.Find(*bound[0]);
    if (found != nullptr) return *found;
    return bound[1] != nullptr ? *bound[1] : Value::None();
  }
  const BoundArgs none(name == "copy" ? "copy" : "dict view", args, {});
  if (name == "copy") return self;
  runtime.budget.CheckMemory(dict.items.size() * sizeof(Value));
  std::vector<Value> items;
  items.reserve(dict.items.size());
  for (const auto& [key, value] : dict.items) {
    if (name == "items") {
      items.push_back(MakeSequence(&runtime.budget, Kind::kTuple, {key, value}));
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  const char* label = name == "items" ? "dict_items" : name == "keys" ? "dict_keys" : "dict_values";
  return MakeSequence(&runtime.budget, Kind::kDictView, std::move(items), label);
}

Value SequenceMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args) {
  const std::vector<Value>& items = self.items();
  if (name == "copy") return self;
  if (name == "count") {
    const BoundArgs bound("count", args, {"value"}, 1);
    return Value::Int(std::count_if(items.begin(), items.end(),
                                    [&](const Value& item) { return Equals(runtime.budget, item, *bound[0]); }));
  }
  const BoundArgs bound("index", args, {"value", "start", "stop"}, 1);
  const auto length = static_cast<int64_t>(items.size());
  const auto clamp = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + length : index, 0, length); };
  const int64_t stop = clamp(bound.Int(2, length));
  for (int64_t i = clamp(bound.Int(1, 0)); i < stop; ++i) {
    if (Equals(runtime.budget, items[static_cast<size_t>(i)], *bound[0])) return Value::Int(i);
  }
  throw EvalError("value is not in the list or tuple");
}

Value RangeMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args) {
  const BoundArgs bound(name == "count" ? "count" : "index", args, {"value"}, 1);
  const bool has = Contains(runtime.budget, *bound[0], self);
  if (name == "count") return Value::Int(has ? 1 : 0);
  if (!has) throw EvalError("value is not in the range");
  return Value::Int((static_cast<int64_t>(bound[0]->real()) - self.range().start) / self.range().step);
}

}  // namespace

MethodAccess FindMethod(const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kString:
      return FindStringMethod(name) != nullptr ? MethodAccess::kSafe : MethodAccess::kNone;
    case Kind::kDict:
      if (IsOneOf(name, {"get", "items", "keys", "values", "copy"})) return MethodAccess::kSafe;
      if (IsOneOf(name, {"clear", "pop", "popitem", "setdefault", "update", "fromkeys"})) return MethodAccess::kUnsafe;
      break;
    case Kind::kList:
      if (IsOneOf(name, {"index", "count", "copy"})) return MethodAccess::kSafe;
      if (IsOneOf(name, {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"})) {
        return MethodAccess::kUnsafe;
      }
      break;
    case Kind::kTuple:
      if (IsOneOf(name, {"index", "count"})) return MethodAccess::kSafe;
      break;
    case Kind::kBytes:
      if (IsBytesMethod(name)) return MethodAccess::kSafe;
      break;
    case Kind::kRange:
      if (IsOneOf(name, {"index", "count"})) return MethodAccess::kSafe;
      break;
    case Kind::kCycler:
      if (IsOneOf(name, {"next", "reset"})) return MethodAccess::kSafe;
      break;
    case Kind::kFloat:
      if (name == "is_integer") return MethodAccess::kSafe;
      break;
    case Kind::kLoop:
      if (IsOneOf(name, {"cycle", "changed"})) return MethodAccess::kSafe;
      break;
    default:
      break;
  }
  return MethodAccess::kNone;
}

Value CallMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args) {
  switch (self.kind()) {
    case Kind::kString:
      return FindStringMethod(name)(runtime, self, args);
    case Kind::kDict:
      return DictMethod(runtime, self, name, args);
    case Kind::kBytes:
      return CallBytesMethod(runtime, self, name, args);
    case Kind::kRange:
      return RangeMethod(runtime, self, name, args);
    case Kind::kList:
    case Kind::kTuple:
      return SequenceMethod(runtime, self, name, args);
    case Kind::kFloat: {
      const BoundArgs none("is_integer", args, {});
      return Value::Bool(self.real() ==
                         static_cast<double>(static_cast<int64_t>(std::clamp(self.real(), -9e18, 9e18))));
    }
    case Kind::kCycler: {
      const BoundArgs none("cycler", args, {});
      auto& cycler = self.as<CyclerObject>();
      Value current = cycler.items[cycler.position];
      cycler.position = name == "reset" ? 0 : (cycler.position + 1) % cycler.items.size();
      return name == "reset" ? Value::None() : current;
    }
    default:
      throw EvalError("object has no such method");
  }
}

}  // namespace vllm::tokenizer::jinja
