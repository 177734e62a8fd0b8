// The values of a chat template: Python's, as far as templates see them. A Value is a small handle; lists, dicts and
// strings are shared and never change (the sandbox forbids it), so sharing between threads is safe. Namespaces,
// iterators, cyclers and joiners change and belong to one rendering.
// Invariant 1: a container's depth is above its children's and at most Budget::kMaxValueDepth, so walks may recurse.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizer/jinja/values/budget.h"

namespace vllm::jinja {

enum class Kind : uint8_t {
  kMissing,  // an empty variable slot; never seen by a template
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kBytes,  // what str.encode() returns
  kList,
  kTuple,
  kDict,
  kDictView,  // keys(), values(), items()
  kRange,
  kIterator,  // what map, select, ... return: can be walked once
  kNamespace,
  kMacro,
  kFunction,
  kLoop,
  kCycler,
  kJoiner,
  kBlocks,  // the variable self
};

// Python's name of the type, for error texts.
const char* TypeName(Kind kind);

struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object();

  // Counts `bytes` for this object until it dies. `heap` may be null (constants of the template).
  void Charge(Budget* heap, size_t bytes);

  Budget* budget = nullptr;
  size_t charged_bytes = 0;
  int depth = 0;
};

struct StringObject;
struct SequenceObject;
struct DictObject;
struct RangeObject;

class Value {
 public:
  Value() : kind_(Kind::kMissing), int_(0) {}
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), int_(0), object_(std::move(object)) {}

  static Value None() { return Value(Kind::kNone); }
  static Value Bool(bool value) {
    Value result(Kind::kBool);
    result.int_ = value ? 1 : 0;
    return result;
  }
  static Value Int(int64_t value) {
    Value result(Kind::kInt);
    result.int_ = value;
    return result;
  }
  static Value Float(double value) {
    Value result(Kind::kFloat);
    result.float_ = value;
    return result;
  }
  // `name` must outlive the value (it is a name in the template), or be null.
  static Value Undefined(const std::string* name = nullptr, bool unsafe = false) {
    Value result(Kind::kUndefined);
    result.name_ = name;
    result.unsafe_ = unsafe;
    return result;
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  // REQUIRES: the kind that the accessor names (integer: bool or int).
  bool boolean() const { return int_ != 0; }
  int64_t integer() const { return int_; }
  double real() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_); }
  const std::string& text() const;  // string, bytes
  bool is_ascii() const;
  bool is_markup() const;
  const std::vector<Value>& items() const;  // list, tuple, dict view, iterator
  const DictObject& dict() const;
  const RangeObject& range() const;
  template <typename T>
  T& as() const {
    return static_cast<T&>(*object_);
  }
  const std::shared_ptr<Object>& object() const { return object_; }

  // Of an undefined value: what an error about it says.
  std::string UndefinedMessage() const;
  // 0 for scalars.
  int depth() const { return object_ ? object_->depth : 0; }

 private:
  explicit Value(Kind kind) : kind_(kind), int_(0) {}

  Kind kind_;
  bool unsafe_ = false;
  union {
    int64_t int_;
    double float_;
    const std::string* name_;
  };
  std::shared_ptr<Object> object_;
};

struct StringObject : Object {
  std::string text;
  bool ascii = true;
  bool markup = false;  // markupsafe.Markup: `+` escapes the other side
};

struct SequenceObject : Object {
  std::vector<Value> items;
  size_t position = 0;     // iterators: the next item
  const char* label = "";  // dict views: dict_keys, ...
  std::string failure;     // iterators: the error that comes after the items
};

// Insertion ordered; keys compare as in Python (1 == 1.0 == True).
struct DictObject : Object {
  std::vector<std::pair<Value, Value>> items;

  // Null when absent. Throws EvalError when the key is unhashable.
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  void Set(Value key, Value value);

 private:
  size_t Position(const Value& key) const;
  std::unordered_map<std::string, size_t> index_;  // HashKey -> position, once there are more than a few items
};

struct RangeObject : Object {
  int64_t start = 0, stop = 0, step = 1;
  int64_t length() const;
  int64_t at(int64_t index) const { return start + index * step; }
};

struct NamespaceObject : Object {
  std::vector<std::pair<std::string, Value>> attributes;
  const Value* Find(std::string_view name) const;
  void Set(Budget& heap, const std::string& name, Value value);
};

// A builtin, or a method bound to `self`.
struct FunctionObject : Object {
  Value self;  // missing for a builtin
  std::string name;
};

struct CyclerObject : Object {
  std::vector<Value> items;
  size_t position = 0;
};

struct Stmt;

// The blocks of the template, which outlives it.
struct BlocksObject : Object {
  const std::map<std::string, const Stmt*>* blocks = nullptr;
  bool Has(const std::string& name) const { return blocks->contains(name); }
};

struct JoinerObject : Object {
  std::string separator;
  bool used = false;
};

// Null `heap`: not counted. All throw EvalError when a limit is met.
Value MakeString(Budget* heap, std::string text, bool markup = false);
Value MakeBytes(Budget* heap, std::string bytes);
Value MakeSequence(Budget* heap, Kind kind, std::vector<Value> items, const char* label = "");
Value MakeDict(Budget* heap, std::shared_ptr<DictObject> dict);
Value MakeRange(Budget* heap, int64_t start, int64_t stop, int64_t step);
Value MakeFunction(Budget* heap, std::string name, Value self = Value());

// A text that is equal for keys that Python calls equal. Throws EvalError for unhashable values.
std::string HashKey(const Value& key);

}  // namespace vllm::jinja
