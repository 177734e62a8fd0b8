// Converts between JSON text and template values. ParseJson reads the context. ToJson implements the filter tojson,
// which is Python's json.dumps. Pure functions; only one thread may use a budget.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool multiline = false;  // as with json.dumps(indent=...)
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Throws EvalError for values that json.dumps rejects (undefined values, functions, ...) and if a limit of the budget
// is exceeded. Like json.dumps, writes NaN and Infinity, which are not valid JSON.
std::string ToJson(Budget& budget, const Value& value, const JsonStyle& style);

// Dicts keep the order of the keys. A repeated key keeps its first position and its last value. Integers must fit in 64
// bits. Throws EvalError; the message starts with `what` unless the limit on fuel, text size or memory is exceeded.
Value ParseJson(Budget& budget, std::string_view text, const char* what);

}  // namespace vllm::tokenizer::jinja
