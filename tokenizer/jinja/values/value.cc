#include "tokenizer/jinja/values/value.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

// Smaller dicts are searched linearly, which is faster than hashing. Most messages have two keys.
constexpr size_t kMinIndexedItems = 9;

int DepthOver(int child_depth) {
  if (child_depth + 1 > Budget::kMaxValueDepth) {
    throw EvalError("values are nested too deeply (limit " + std::to_string(Budget::kMaxValueDepth) + ")");
  }
  return child_depth + 1;
}

}  // namespace

const char* TypeName(Kind kind) {
  switch (kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kBytes:
      return "bytes";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kDictView:
      return "dict view";
    case Kind::kRange:
      return "range";
    case Kind::kIterator:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kMacro:
      return "Macro";
    case Kind::kFunction:
      return "function";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
    case Kind::kBlocks:
      return "TemplateReference";
  }
  return "object";
}

Object::~Object() {
  if (budget != nullptr) budget->Release(charged_bytes);
}

void Object::Charge(Budget* heap, size_t bytes) {
  if (heap == nullptr) return;
  heap->Reserve(bytes);
  budget = heap;
  charged_bytes += bytes;
}

const std::string& Value::text() const { return as<StringObject>().text; }
bool Value::is_ascii() const { return as<StringObject>().ascii; }
bool Value::is_markup() const { return kind_ == Kind::kString && as<StringObject>().markup; }
const std::vector<Value>& Value::items() const { return as<SequenceObject>().items; }
const DictObject& Value::dict() const { return as<DictObject>(); }
const RangeObject& Value::range() const { return as<RangeObject>(); }

std::string Value::UndefinedMessage() const {
  if (kind_ != Kind::kUndefined || name_ == nullptr) return "value is undefined";
  if (unsafe_) return std::string("access to attribute '").append(*name_).append("' is unsafe");
  return std::string("'").append(*name_).append("' is undefined");
}

std::string HashKey(const Value& key) {
  switch (key.kind()) {
    case Kind::kString:
      return std::string("s").append(key.text());
    case Kind::kBytes:
      return std::string("b").append(key.text());
    case Kind::kNone:
      return "n";
    case Kind::kBool:
    case Kind::kInt:
      return std::string("i").append(std::to_string(key.integer()));
    case Kind::kFloat: {
      const double value = key.real();
      if (value >= -0x1p63 && value < 0x1p63 && value == std::floor(value)) {
        return std::string("i").append(std::to_string(static_cast<int64_t>(value)));
      }
      std::string bytes(sizeof(double), '\0');
      std::memcpy(bytes.data(), &value, sizeof(double));
      return std::string("f").append(bytes);
    }
    case Kind::kTuple: {
      std::string result = "t";
      for (const Value& item : key.items()) {
        const std::string part = HashKey(item);
        result.append(std::to_string(part.size())).append(":").append(part);
      }
      return result;
    }
    case Kind::kList:
    case Kind::kDict:
    case Kind::kDictView:
      throw EvalError(std::string("unhashable type: '") + TypeName(key.kind()) + "'");
    case Kind::kUndefined:
      return "u";
    default:
      return std::string("p").append(std::to_string(reinterpret_cast<uintptr_t>(key.object().get())));
  }
}

size_t DictObject::Position(const Value& key) const {
  if (!index_.empty()) {
    const auto found = index_.find(HashKey(key));
    return found == index_.end() ? items.size() : found->second;
  }
  if (key.is_string()) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].first.is_string() && items[i].first.text() == key.text()) return i;
    }
    return items.size();
  }
  const std::string hash = HashKey(key);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].first.is_string() && HashKey(items[i].first) == hash) return i;
  }
  return items.size();
}

const Value* DictObject::Find(const Value& key) const {
  const size_t position = Position(key);
  return position < items.size() ? &items[position].second : nullptr;
}

const Value* DictObject::Find(std::string_view key) const {
  if (!index_.empty()) {
    std::string hash = "s";
    hash += key;
    const auto found = index_.find(hash);
    return found == index_.end() ? nullptr : &items[found->second].second;
  }
  for (const auto& [name, value] : items) {
    if (name.is_string() && name.text() == key) return &value;
  }
  return nullptr;
}

void DictObject::Set(Value key, Value value) {
  depth = std::max(depth, DepthOver(std::max(key.depth(), value.depth())));
  const size_t position = Position(key);
  if (position < items.size()) {
    items[position].second = std::move(value);
    return;
  }
  items.emplace_back(std::move(key), std::move(value));
  if (!index_.empty()) {
    index_.emplace(HashKey(items.back().first), items.size() - 1);
  } else if (items.size() >= kMinIndexedItems) {
    for (size_t i = 0; i < items.size(); ++i) index_.emplace(HashKey(items[i].first), i);
  }
}

int64_t RangeObject::length() const {
  if (step > 0) return stop <= start ? 0 : (stop - start - 1) / step + 1;
  return start <= stop ? 0 : (start - stop - 1) / -step + 1;
}

const Value* NamespaceObject::Find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void NamespaceObject::Set(Budget& heap, const std::string& name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  heap.Spend(attributes.size());
  Charge(&heap, sizeof(std::pair<std::string, Value>) + name.size());
  attributes.emplace_back(name, std::move(value));
}

Value MakeString(Budget* heap, std::string text, bool markup) {
  auto object = std::make_shared<StringObject>();
  if (heap != nullptr) {
    Budget::CheckText(text.size());
    heap->SpendBytes(text.size());
    object->Charge(heap, sizeof(StringObject) + text.capacity());
  }
  object->ascii = IsAscii(text);
  object->markup = markup;
  object->text = std::move(text);
  return Value(Kind::kString, std::move(object));
}

Value MakeBytes(Budget* heap, std::string bytes) {
  const Value value = MakeString(heap, std::move(bytes));
  return Value(Kind::kBytes, value.object());
}

Value MakeSequence(Budget* heap, Kind kind, std::vector<Value> items, const char* label) {
  auto object = std::make_shared<SequenceObject>();
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  object->depth = DepthOver(depth);
  if (heap != nullptr) {
    heap->Spend(4 + items.size() / 4);
    object->Charge(heap, sizeof(SequenceObject) + items.capacity() * sizeof(Value));
  }
  object->items = std::move(items);
  object->label = label;
  return Value(kind, std::move(object));
}

Value MakeDict(Budget* heap, std::shared_ptr<DictObject> dict) {
  // Counts each item twice, because the index of a larger dict has a copy of each key.
  const size_t bytes = sizeof(DictObject) + dict->items.size() * 2 * sizeof(std::pair<Value, Value>);
  if (heap != nullptr) {
    heap->Spend(1 + dict->items.size());
    dict->Charge(heap, bytes);
  }
  dict->depth = std::max(dict->depth, 1);
  return Value(Kind::kDict, std::move(dict));
}

Value MakeRange(Budget* heap, int64_t start, int64_t stop, int64_t step) {
  auto object = std::make_shared<RangeObject>();
  object->Charge(heap, sizeof(RangeObject));
  object->start = start;
  object->stop = stop;
  object->step = step;
  return Value(Kind::kRange, std::move(object));
}

Value MakeFunction(Budget* heap, std::string name, Value self) {
  auto object = std::make_shared<FunctionObject>();
  object->Charge(heap, sizeof(FunctionObject));
  object->depth = DepthOver(self.depth());
  object->name = std::move(name);
  object->self = std::move(self);
  return Value(Kind::kFunction, std::move(object));
}

}  // namespace vllm::tokenizer::jinja
