#include <algorithm>
#include <unordered_set>

#include "tokenizer/jinja/builtins/builtin_tests.h"
#include "tokenizer/jinja/builtins/filters.h"
#include "tokenizer/jinja/builtins/subscript.h"
#include "tokenizer/jinja/values/letter_case.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"

namespace vllm::tokenizer::jinja {
namespace {

Value ListOf(Runtime& runtime, std::vector<Value> items) {
  return MakeSequence(&runtime.budget, Kind::kList, std::move(items));
}
Value IteratorOf(Runtime& runtime, std::vector<Value> items) {
  return MakeSequence(&runtime.budget, Kind::kIterator, std::move(items));
}
// Calls `produce` and returns an iterator over the items that it appends. A Python generator runs while it is iterated,
// so an error in `produce` is thrown only after the items produced before it have been read.
template <typename Produce>
Value GeneratorOf(Runtime& runtime, Produce produce) {
  std::vector<Value> items;
  std::string failure;
  try {
    produce(items);
  } catch (const EvalError& error) {
    failure = error.what();
  }
  const Value iterator = IteratorOf(runtime, std::move(items));
  iterator.as<SequenceObject>().failure = std::move(failure);
  return iterator;
}

Value IgnoreCase(Runtime& runtime, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  runtime.budget.SpendBytes(value.text().size() * 8);
  return MakeString(&runtime.budget, ToLower(value.text()));
}

Value Default(Runtime&, const Value& input, const Args& args) {
  const BoundArgs bound("default", args, {"default_value", "boolean"});
  if (!input.is_undefined() && !(bound.Bool(1, false) && !Truthy(input))) return input;
  return bound[0] != nullptr ? *bound[0] : MakeString(nullptr, "");
}

Value LengthFilter(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("length", args, {});
  if (input.is_string()) runtime.budget.SpendBytes(input.text().size() * (input.is_ascii() ? 1 : 8));
  const std::optional<int64_t> length = Length(input);
  if (!length) throw EvalError(std::string("object of type '") + TypeName(input.kind()) + "' has no length");
  return Value::Int(*length);
}

Value ListFilter(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("list", args, {});
  return ListOf(runtime, ToVector(runtime.budget, input));
}

Value First(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("first", args, {});
  if (input.is_sequence()) return input.items().empty() ? Value::Undefined() : input.items().front();
  if (input.is(Kind::kIterator)) {
    auto& iterator = input.as<SequenceObject>();
    if (iterator.position < iterator.items.size()) return iterator.items[iterator.position++];
    EndIterator(iterator);
    return Value::Undefined();
  }
  if (input.is_string()) return GetItem(runtime, input, Value::Int(0));
  const std::vector<Value> items = ToVector(runtime.budget, input);
  return items.empty() ? Value::Undefined() : items.front();
}

Value Last(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("last", args, {});
  if (input.is_sequence()) return input.items().empty() ? Value::Undefined() : input.items().back();
  if (input.is_string()) return GetItem(runtime, input, Value::Int(-1));
  if (input.is(Kind::kIterator)) throw EvalError("'generator' object is not reversible");
  const std::vector<Value> items = ToVector(runtime.budget, input);
  return items.empty() ? Value::Undefined() : items.back();
}

Value Join(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("join", args, {"d", "attribute"});
  const std::string separator = bound[0] == nullptr ? "" : Str(runtime.budget, *bound[0]);
  std::string result;
  bool first = true;
  for (const Value& item : ToVector(runtime.budget, input)) {
    if (!first) {
      Budget::CheckText(result.size() + separator.size());
      result += separator;
    }
    first = false;
    AppendStr(runtime.budget, bound.NotNone(1) == nullptr ? item : GetPath(runtime, item, *bound[1]), result);
  }
  return MakeString(&runtime.budget, std::move(result));
}

Value Items(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("items", args, {});
  return GeneratorOf(runtime, [&](std::vector<Value>& items) {
    if (input.is_undefined()) return;
    if (!input.is(Kind::kDict)) throw EvalError("items: can only get item pairs from a mapping");
    for (const auto& [key, value] : input.dict().items) {
      items.push_back(MakeSequence(&runtime.budget, Kind::kTuple, {key, value}));
    }
  });
}

Value Reverse(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("reverse", args, {});
  if (input.is_string()) return GetSlice(runtime, input, Value::None(), Value::None(), Value::Int(-1));
  std::vector<Value> items = ToVector(runtime.budget, input);
  std::reverse(items.begin(), items.end());
  // As in Jinja2, the result is a list if Python's reversed() rejects the input, and an iterator otherwise.
  return input.is(Kind::kIterator) ? ListOf(runtime, std::move(items)) : IteratorOf(runtime, std::move(items));
}

Value Map(Runtime& runtime, const Value& input, const Args& args) {
  return GeneratorOf(runtime, [&](std::vector<Value>& results) {
    if (!Truthy(input)) return;
    if (args.positional.empty()) {
      const BoundArgs bound("map", args, {"attribute", "default"}, 1);
      for (const Value& item : ToVector(runtime.budget, input)) {
        runtime.budget.Spend(4);
        results.push_back(GetPath(runtime, item, *bound[0], bound.NotNone(1)));
      }
      return;
    }
    if (!args.positional[0].is_string()) throw EvalError("map needs the name of a filter");
    Args rest = args;
    const std::string name = args.positional[0].text();
    rest.positional.erase(rest.positional.begin());
    for (const Value& item : ToVector(runtime.budget, input)) {
      results.push_back(CallFilter(runtime, name, item, rest));
    }
  });
}

template <bool kSelect, bool kAttribute>
Value Select(Runtime& runtime, const Value& input, const Args& args) {
  return GeneratorOf(runtime, [&](std::vector<Value>& results) {
    if (!Truthy(input)) return;
    constexpr size_t kTestIndex = kAttribute ? 1 : 0;
    constexpr const char* kName =
        kSelect ? (kAttribute ? "selectattr" : "select") : (kAttribute ? "rejectattr" : "reject");
    if (args.positional.size() < kTestIndex) throw EvalError(std::string(kName) + " is missing the attribute name");
    const bool has_test = args.positional.size() > kTestIndex;
    if (has_test && !args.positional[kTestIndex].is_string())
      throw EvalError(std::string(kName) + " needs the name of a test");
    Args rest;
    rest.keywords = args.keywords;
    for (size_t i = kTestIndex + 1; i < args.positional.size(); ++i) rest.positional.push_back(args.positional[i]);
    for (const Value& item : ToVector(runtime.budget, input)) {
      runtime.budget.Spend(4);
      const Value subject = kAttribute ? GetPath(runtime, item, args.positional[0]) : item;
      const bool passes =
          has_test ? CallTest(runtime, args.positional[kTestIndex].text(), subject, rest) : Truthy(subject);
      if (passes == kSelect) results.push_back(item);
    }
  });
}

// Returns `items` sorted by `keys`. REQUIRES: items and keys have the same length.
std::vector<Value> SortedBy(Runtime& runtime, const std::vector<Value>& items, const std::vector<Value>& keys,
                            bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? Less(runtime.budget, keys[b], keys[a]) : Less(runtime.budget, keys[a], keys[b]);
  });
  std::vector<Value> result;
  result.reserve(items.size());
  for (const size_t i : order) result.push_back(items[i]);
  return result;
}

Value Sort(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("sort", args, {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = bound.Bool(1, false);
  std::vector<Value> paths;
  if (bound[2] != nullptr && bound[2]->is_string()) {
    const std::string& text = bound[2]->text();
    for (size_t start = 0; start <= text.size();) {
      const size_t comma = std::min(text.find(',', start), text.size());
      paths.push_back(MakeString(&runtime.budget, text.substr(start, comma - start)));
      start = comma + 1;
    }
  } else {
    paths.push_back(bound[2] != nullptr ? *bound[2] : Value::None());
  }
  const std::vector<Value> items = ToVector(runtime.budget, input);
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> parts;
    parts.reserve(paths.size());
    for (const Value& path : paths) {
      parts.push_back(IgnoreCase(runtime, GetPath(runtime, item, path), case_sensitive));
    }
    keys.push_back(ListOf(runtime, std::move(parts)));
  }
  return ListOf(runtime, SortedBy(runtime, items, keys, bound.Int(0, 0) != 0));
}

Value DictSort(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("dictsort", args, {"case_sensitive", "by", "reverse"});
  const std::string by = bound[1] == nullptr ? "key" : bound.Text(1);
  if (by != "key" && by != "value") throw EvalError("dictsort: can only sort by either \"key\" or \"value\"");
  if (!input.is(Kind::kDict)) {
    throw EvalError(input.is_undefined() ? input.UndefinedMessage() : "dictsort needs a mapping");
  }
  std::vector<Value> items, keys;
  for (const auto& [key, value] : input.dict().items) {
    items.push_back(MakeSequence(&runtime.budget, Kind::kTuple, {key, value}));
    keys.push_back(IgnoreCase(runtime, by == "key" ? key : value, bound.Bool(0, false)));
  }
  return ListOf(runtime, SortedBy(runtime, items, keys, bound.Int(2, 0) != 0));
}

Value Unique(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("unique", args, {"case_sensitive", "attribute"});
  const Value path = bound[1] != nullptr ? *bound[1] : Value::None();
  return GeneratorOf(runtime, [&](std::vector<Value>& results) {
    std::unordered_set<std::string> seen;
    for (const Value& item : ToVector(runtime.budget, input)) {
      std::string key = HashKey(IgnoreCase(runtime, GetPath(runtime, item, path), bound.Bool(0, false)));
      runtime.budget.SpendBytes(key.size() * 4 + 512);
      if (seen.insert(std::move(key)).second) results.push_back(item);
    }
  });
}

template <bool kMax>
Value Extreme(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound(kMax ? "max" : "min", args, {"case_sensitive", "attribute"});
  const Value path = bound[1] != nullptr ? *bound[1] : Value::None();
  const std::vector<Value> items = ToVector(runtime.budget, input);
  if (items.empty()) return Value::Undefined();
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < items.size(); ++i) {
    const Value key = IgnoreCase(runtime, GetPath(runtime, items[i], path), bound.Bool(0, false));
    if (i > 0 && !(kMax ? Less(runtime.budget, best_key, key) : Less(runtime.budget, key, best_key))) continue;
    best = i;
    best_key = key;
  }
  return items[best];
}

Value Sum(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("sum", args, {"attribute", "start"});
  Value total = bound[1] != nullptr ? *bound[1] : Value::Int(0);
  if (total.is_string()) throw EvalError("sum cannot add strings");
  for (const Value& item : ToVector(runtime.budget, input)) {
    total = Arithmetic(runtime.budget, Op::kAdd, total,
                       bound.NotNone(0) == nullptr ? item : GetPath(runtime, item, *bound[0]));
  }
  return total;
}

Value GroupBy(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const bool case_sensitive = bound.Bool(2, false);
  const auto key_of = [&](const Value& item, bool sensitive) {
    return IgnoreCase(runtime, GetPath(runtime, item, *bound[0], bound.NotNone(1)), sensitive);
  };
  const std::vector<Value> items = ToVector(runtime.budget, input);
  std::vector<Value> keys;
  keys.reserve(items.size());
  for (const Value& item : items) keys.push_back(key_of(item, case_sensitive));
  const std::vector<Value> sorted = SortedBy(runtime, items, keys, false);
  std::vector<Value> groups;
  for (size_t start = 0; start < sorted.size();) {
    const Value key = key_of(sorted[start], case_sensitive);
    std::vector<Value> members;
    size_t end = start;
    while (end < sorted.size() && Equals(runtime.budget, key, key_of(sorted[end], case_sensitive))) {
      members.push_back(sorted[end++]);
    }
    if (end == start) members.push_back(sorted[end++]);  // NaN is not equal to itself
    groups.push_back(MakeSequence(&runtime.budget, Kind::kTuple,
                                  {key_of(sorted[start], true), ListOf(runtime, std::move(members))}, "group"));
    start = end;
  }
  return ListOf(runtime, std::move(groups));
}

Value Batch(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("batch", args, {"linecount", "fill_with"}, 1);
  return GeneratorOf(runtime, [&](std::vector<Value>& batches) {
    const int64_t size = bound.Int(0, 1);
    std::vector<Value> batch;
    const auto is_full = [&] { return static_cast<int64_t>(batch.size()) == size; };
    for (const Value& item : ToVector(runtime.budget, input)) {
      if (is_full()) {
        batches.push_back(ListOf(runtime, std::move(batch)));
        batch.clear();
      }
      batch.push_back(item);
    }
    if (!batch.empty()) {
      if (const Value* fill = bound.NotNone(1)) {
        if (size > static_cast<int64_t>(Budget::kLiveBytes / sizeof(Value))) {
          runtime.budget.CheckMemory(Budget::kLiveBytes + 1);
        }
        if (size > 0) runtime.budget.Spend(static_cast<size_t>(size));
        while (static_cast<int64_t>(batch.size()) < size) batch.push_back(*fill);
      }
      batches.push_back(ListOf(runtime, std::move(batch)));
    }
  });
}

Value Slice(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("slice", args, {"slices", "fill_with"}, 1);
  return GeneratorOf(runtime, [&](std::vector<Value>& slices) {
    const int64_t num_slices = bound.Int(0, 1);
    const std::vector<Value> items = ToVector(runtime.budget, input);
    if (num_slices == 0) throw EvalError("division by zero");
    const auto length = static_cast<int64_t>(items.size());
    const int64_t per_slice = num_slices > 0 ? length / num_slices : 0;
    const int64_t with_extra = num_slices > 0 ? length % num_slices : 0;
    int64_t start = 0;
    for (int64_t i = 0; i < num_slices; ++i) {
      const int64_t end = start + per_slice + (i < with_extra ? 1 : 0);
      std::vector<Value> slice(items.begin() + start, items.begin() + end);
      if (bound.NotNone(1) != nullptr && i >= with_extra) slice.push_back(*bound[1]);
      slices.push_back(ListOf(runtime, std::move(slice)));
      start = end;
    }
  });
}

Value Attr(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("attr", args, {"name"}, 1);
  if (input.is_undefined()) throw EvalError(input.UndefinedMessage());
  // Unlike a subscript, the filter attr does not look up keys of a dict.
  if (input.is(Kind::kDict)) {
    const Value empty = MakeDict(&runtime.budget, std::make_shared<DictObject>());
    const Value method = GetItem(runtime, empty, *bound[0]);
    return method.is(Kind::kFunction) ? MakeFunction(&runtime.budget, bound.Text(0), input) : Value::Undefined();
  }
  return bound[0]->is_string() ? GetItem(runtime, input, *bound[0]) : Value::Undefined();
}

constexpr NamedFilter kFilters[] = {
    {"length", LengthFilter},
    {"count", LengthFilter},
    {"default", Default},
    {"d", Default},
    {"list", ListFilter},
    {"join", Join},
    {"map", Map},
    {"selectattr", Select<true, true>},
    {"rejectattr", Select<false, true>},
    {"select", Select<true, false>},
    {"reject", Select<false, false>},
    {"items", Items},
    {"first", First},
    {"last", Last},
    {"reverse", Reverse},
    {"sort", Sort},
    {"dictsort", DictSort},
    {"unique", Unique},
    {"min", Extreme<false>},
    {"max", Extreme<true>},
    {"sum", Sum},
    {"groupby", GroupBy},
    {"batch", Batch},
    {"slice", Slice},
    {"attr", Attr},
};

}  // namespace

Filter FindSequenceFilter(std::string_view name) {
  for (const NamedFilter& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace vllm::tokenizer::jinja
