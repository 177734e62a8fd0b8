// Evaluates object.name, object[index] and object[start:stop:step] by the rules of Jinja2's sandbox. Pure functions;
// only one thread may use a runtime.
#pragma once

#include <string>

#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

// Returns object.name, or an undefined value. `key` is `name` as a value, and `name` must outlive the result. The
// evaluator handles the attributes of loops and macros. Throws EvalError.
Value GetAttribute(Runtime& runtime, const Value& object, const std::string& name, const Value& key);
// Returns object[index], or an undefined value. Throws EvalError, for example if `object` is undefined.
Value GetItem(Runtime& runtime, const Value& object, const Value& index);
// Returns object[start:stop:step]. Each of `start`, `stop` and `step` may be None. Throws EvalError.
Value GetSlice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step);

// Follows the `attribute` argument of a filter, such as "a.b.0": calls GetItem for each part, with an integer if the
// part is a number. `fallback` replaces undefined results unless it is null. Throws EvalError.
Value GetPath(Runtime& runtime, Value object, const Value& path, const Value* fallback = nullptr);

}  // namespace vllm::tokenizer::jinja
