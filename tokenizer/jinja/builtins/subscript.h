// object.name, object[index] and object[start:stop:step] as Jinja2's sandbox does them. One thread per runtime.
#pragma once

#include <string>

#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

// `name` must outlive the result, `key` is the same text as a value. Loops and macros are not handled here.
Value GetAttribute(Runtime& runtime, const Value& object, const std::string& name, const Value& key);
Value GetItem(Runtime& runtime, const Value& object, const Value& index);
// Parts may be None.
Value GetSlice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step);

// "a.b.0" as filters take it: attribute by attribute through GetItem; whole numbers are indices.
Value GetPath(Runtime& runtime, Value object, const Value& path, const Value* fallback = nullptr);

}  // namespace vllm::jinja
