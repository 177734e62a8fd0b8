#include "tokenizer/jinja/builtins/subscript.h"

#include <algorithm>
#include <charconv>

#include "tokenizer/jinja/builtins/methods.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

// Returns the attribute, or a kMissing value if there is none or the sandbox forbids it. Sets `unsafe` if it is
// forbidden.
Value OwnAttribute(Runtime& runtime, const Value& object, const std::string& name, bool& unsafe) {
  switch (FindMethod(object, name)) {
    case MethodAccess::kSafe:
      return MakeFunction(&runtime.budget, name, object);
    case MethodAccess::kUnsafe:
      unsafe = true;
      return Value();
    case MethodAccess::kNone:
      break;
  }
  if (object.is(Kind::kNamespace)) {
    if (const Value* found = object.as<NamespaceObject>().Find(name)) return *found;
  } else if (object.is(Kind::kCycler) && name == "current") {
    const auto& cycler = object.as<CyclerObject>();
    return cycler.items[cycler.position];
  } else if (object.is(Kind::kRange)) {
    if (name == "start") return Value::Int(object.range().start);
    if (name == "stop") return Value::Int(object.range().stop);
    if (name == "step") return Value::Int(object.range().step);
  } else if (object.is(Kind::kBlocks) && object.as<BlocksObject>().Has(name)) {
    return MakeFunction(&runtime.budget, name, object);
  } else if (object.is(Kind::kTuple) && object.as<SequenceObject>().label[0] != '\0') {
    if (name == "grouper") return object.items()[0];  // the named tuple of groupby
    if (name == "list") return object.items()[1];
  }
  return Value();
}

Value ItemAt(Runtime& runtime, const Value& object, int64_t index) {
  if (object.is_string()) {
    const std::string& text = object.text();
    const auto length = *Length(object);
    if (index < 0) index += length;
    if (index < 0 || index >= length) return Value();
    if (!object.is_ascii()) runtime.budget.SpendBytes(text.size() * 16);
    size_t start = object.is_ascii() ? static_cast<size_t>(index) : CodePointOffset(text, static_cast<size_t>(index));
    const size_t first = start;
    NextCodePoint(text, start);
    return MakeString(&runtime.budget, text.substr(first, start - first), object.is_markup());
  }
  if (object.is(Kind::kBytes)) {
    const auto length = static_cast<int64_t>(object.text().size());
    if (index < 0) index += length;
    if (index < 0 || index >= length) return Value();
    return Value::Int(static_cast<unsigned char>(object.text()[static_cast<size_t>(index)]));
  }
  if (object.is_sequence()) {
    const auto length = static_cast<int64_t>(object.items().size());
    if (index < 0) index += length;
    return index < 0 || index >= length ? Value() : object.items()[static_cast<size_t>(index)];
  }
  if (object.is(Kind::kRange)) {
    const int64_t length = object.range().length();
    if (index < 0) index += length;
    return index < 0 || index >= length ? Value() : Value::Int(object.range().at(index));
  }
  return Value();
}

}  // namespace

Value GetAttribute(Runtime& runtime, const Value& object, const std::string& name, const Value& key) {
  const bool is_private = name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__";
  // In Python, even an undefined value has these three attributes. Reading another attribute of an undefined value is
  // an error here, although Python defines a few more.
  if (is_private && (!object.is_undefined() || name == "__class__" || name == "__init__" || name == "__doc__")) {
    return Value::Undefined(&name, true);
  }
  if (object.is_undefined()) {
    throw EvalError(object.UndefinedMessage() + ", so it has no attribute '" + name.substr(0, 40) + "'");
  }
  bool unsafe = false;
  Value result = OwnAttribute(runtime, object, name, unsafe);
  if (!result.is(Kind::kMissing)) return result;
  if (unsafe) return Value::Undefined(&name, true);
  if (object.is(Kind::kDict)) {
    runtime.budget.Spend(4);
    if (const Value* found = object.dict().Find(key)) return *found;
  }
  return Value::Undefined(&name);
}

Value GetItem(Runtime& runtime, const Value& object, const Value& index) {
  if (object.is_undefined()) throw EvalError(object.UndefinedMessage());
  if (object.is(Kind::kDict)) {
    runtime.budget.Spend(4);
    const bool hashable = !index.is(Kind::kList) && !index.is(Kind::kDict);
    if (const Value* found = hashable ? object.dict().Find(index) : nullptr) return *found;
  } else if (index.is_integer()) {
    Value item = ItemAt(runtime, object, index.integer());
    if (!item.is(Kind::kMissing)) return item;
  }
  if (index.is_string()) {
    bool unsafe = false;
    Value attribute = OwnAttribute(runtime, object, index.text(), unsafe);
    if (!attribute.is(Kind::kMissing)) return attribute;
  }
  return Value::Undefined();
}

Value GetSlice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) throw EvalError(object.UndefinedMessage());
  const bool is_bytes = object.is(Kind::kBytes);
  if (!object.is_string() && !is_bytes && !object.is_sequence() && !object.is(Kind::kRange)) {
    throw EvalError(std::string("'") + TypeName(object.kind()) + "' object cannot be sliced");
  }
  for (const Value* part : {&start, &stop, &step}) {
    if (!part->is(Kind::kNone) && !part->is_integer()) throw EvalError("slice indices must be integers or none");
  }
  const int64_t length = *Length(object);
  const int64_t stride = step.is(Kind::kNone) ? 1 : step.integer();
  if (stride == 0) throw EvalError("slice step cannot be zero");
  // Follows CPython's PySlice_AdjustIndices.
  const auto clamp = [&](const Value& part, int64_t fallback) {
    if (part.is(Kind::kNone)) return fallback;
    int64_t index = part.integer();
    if (index < 0) {
      index = index < -length ? -1 : index + length;
      if (index < 0) return stride < 0 ? int64_t{-1} : int64_t{0};
    }
    return index >= length ? (stride < 0 ? length - 1 : length) : index;
  };
  const int64_t first = clamp(start, stride < 0 ? length - 1 : 0);
  const int64_t last = clamp(stop, stride < 0 ? -1 : length);
  const uint64_t distance = static_cast<uint64_t>(stride > 0 ? last - first : first - last);
  const bool empty = stride > 0 ? last <= first : first <= last;
  const uint64_t magnitude = stride > 0 ? static_cast<uint64_t>(stride) : ~static_cast<uint64_t>(stride) + 1;
  const auto count = empty ? size_t{0} : static_cast<size_t>((distance - 1) / magnitude + 1);
  const auto source_index = [&](size_t i) { return static_cast<size_t>(first + static_cast<int64_t>(i) * stride); };

  if (object.is(Kind::kRange)) {
    const RangeObject& range = object.range();
    int64_t range_step = 0;
    if (__builtin_mul_overflow(range.step, stride, &range_step))
      throw EvalError("slice step is out of range (64 bits)");
    return MakeRange(&runtime.budget, range.at(first), range.at(last), range_step);
  }
  if (object.is_sequence()) {
    runtime.budget.CheckMemory(count * sizeof(Value));
    runtime.budget.Spend(1 + count / 2);
    std::vector<Value> items;
    items.reserve(count);
    for (size_t i = 0; i < count; ++i) items.push_back(object.items()[source_index(i)]);
    return MakeSequence(&runtime.budget, object.kind(), std::move(items));
  }
  const std::string& text = object.text();
  const bool is_bytewise = is_bytes || object.is_ascii();
  runtime.budget.SpendBytes(text.size() * (is_bytewise ? 1 : 16));
  std::string result;
  if (stride == 1) {
    if (count > 0) {
      const size_t from = is_bytewise ? source_index(0) : CodePointOffset(text, source_index(0));
      const std::string_view rest = std::string_view(text).substr(from);
      result = rest.substr(0, is_bytewise ? count : CodePointOffset(rest, count));
    }
  } else if (is_bytewise) {
    runtime.budget.Spend(count / 8);
    for (size_t i = 0; i < count; ++i) result += text[source_index(i)];
  } else {
    std::u32string code_points;
    for (size_t i = 0; i < text.size();) code_points += NextCodePoint(text, i);
    for (size_t i = 0; i < count; ++i) AppendCodePoint(code_points[source_index(i)], result);
  }
  if (is_bytes) return MakeBytes(&runtime.budget, std::move(result));
  return MakeString(&runtime.budget, std::move(result), object.is_markup());
}

Value GetPath(Runtime& runtime, Value object, const Value& path, const Value* fallback) {
  const auto step = [&](const Value& part) {
    object = GetItem(runtime, object, part);
    if (fallback != nullptr && object.is_undefined()) object = *fallback;
  };
  if (path.is(Kind::kNone)) return object;
  if (!path.is_string()) {
    step(path);
    return object;
  }
  const std::string_view text = path.text();
  for (size_t start = 0; start <= text.size();) {
    const size_t dot = std::min(text.find('.', start), text.size());
    const std::string_view part = text.substr(start, dot - start);
    int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = !part.empty() && part[0] != '-' && error == std::errc() && end == part.data() + part.size();
    step(number ? Value::Int(index) : MakeString(&runtime.budget, std::string(part)));
    start = dot + 1;
  }
  return object;
}

}  // namespace vllm::tokenizer::jinja
