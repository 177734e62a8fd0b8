// The Python values that a chat template works with. A Value is a scalar or a handle to a shared object. Strings,
// lists, tuples and dicts are immutable once made, because the sandbox forbids changing them. Namespaces, iterators,
// cyclers, joiners and loops are mutable. Values that are charged to a budget belong to one rendering and its thread.
// Constants of a template are charged to no budget, and any number of threads may read them.
// Invariant: the depth of a container is greater than that of its children and at most Budget::kMaxValueDepth, so
// functions may recurse into values. Namespaces, macros, loops and cyclers are exempt: they can form cycles.
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

namespace vllm::tokenizer::jinja {

enum class Kind : uint8_t {
  kMissing,  // an empty variable slot; templates never see it
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kBytes,  // the result of str.encode()
  kList,
  kTuple,
  kDict,
  kDictView,  // keys(), values(), items()
  kRange,
  kIterator,  // the result of map, select, ...; can be iterated once
  kNamespace,
  kMacro,
  kFunction,
  kLoop,
  kCycler,
  kJoiner,
  kBlocks,  // the variable `self`
};

// Returns the name of the type for error messages, mostly as in Python or Jinja2.
const char* TypeName(Kind kind);

struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object();

  // Charges `bytes` to `heap` until this object is destroyed. Does nothing if `heap` is null, as for constants of the
  // template. Throws EvalError if the memory limit is exceeded.
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
  // `name` is null or outlives the value. `unsafe` means that the sandbox forbids access to the attribute `name`.
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

  // REQUIRES: the value has the kind that the accessor names. integer() also accepts a bool, and real() any number.
  bool boolean() const { return int_ != 0; }
  int64_t integer() const { return int_; }
  double real() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_); }
  const std::string& text() const;  // string or bytes
  bool is_ascii() const;
  bool is_markup() const;                   // any kind
  const std::vector<Value>& items() const;  // list, tuple, dict view or iterator
  const DictObject& dict() const;
  const RangeObject& range() const;
  template <typename T>
  T& as() const {
    return static_cast<T&>(*object_);
  }
  const std::shared_ptr<Object>& object() const { return object_; }

  // Returns the error message for a use of this undefined value.
  std::string UndefinedMessage() const;
  // Returns the nesting depth, which is 0 for scalars and strings.
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
  bool markup = false;  // markupsafe.Markup: `+` escapes an operand that is not Markup
};

struct SequenceObject : Object {
  std::vector<Value> items;
  size_t position = 0;     // iterators: index of the next item
  const char* label = "";  // dict views: "dict_keys", ...; named tuples of groupby: "group"
  std::string failure;     // iterators: the error to throw after the last item
};

// Keeps insertion order. Keys are equal if their HashKey is equal, so 1, 1.0 and True are the same key.
struct DictObject : Object {
  std::vector<std::pair<Value, Value>> items;

  // Returns null if the key is absent. Throws EvalError if the key is unhashable.
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  void Set(Value key, Value value);

 private:
  size_t Position(const Value& key) const;
  std::unordered_map<std::string, size_t> index_;  // HashKey -> index in items; empty for small dicts
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

// A global function, or a method or block bound to `self`.
struct FunctionObject : Object {
  Value self;  // kMissing for a global function
  std::string name;
};

struct CyclerObject : Object {
  std::vector<Value> items;
  size_t position = 0;
};

struct Stmt;

// Refers to the blocks of the template, which must outlive this object.
struct BlocksObject : Object {
  const std::map<std::string, const Stmt*>* blocks = nullptr;
  bool Has(const std::string& name) const { return blocks->contains(name); }
};

struct JoinerObject : Object {
  std::string separator;
  bool used = false;
};

// These functions charge the new value to `heap` unless it is null. They throw EvalError if a limit is exceeded.
// `label` is a string literal (see SequenceObject).
Value MakeString(Budget* heap, std::string text, bool markup = false);
Value MakeBytes(Budget* heap, std::string bytes);
Value MakeSequence(Budget* heap, Kind kind, std::vector<Value> items, const char* label = "");
Value MakeDict(Budget* heap, std::shared_ptr<DictObject> dict);
Value MakeRange(Budget* heap, int64_t start, int64_t stop, int64_t step);
Value MakeFunction(Budget* heap, std::string name, Value self = Value());

// Returns a string that is the same for keys that are equal in Python, except that it differs for two equal ranges and
// for two equal bound methods. Throws EvalError if the value is unhashable.
std::string HashKey(const Value& key);

}  // namespace vllm::tokenizer::jinja
