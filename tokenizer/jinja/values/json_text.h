// JSON text <-> template values: the context comes in through ParseJson, the tojson filter is json.dumps.
// One thread per budget.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool multiline = false;  // json.dumps(indent=...)
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Throws EvalError for what JSON cannot hold (undefined values, functions, ...).
std::string ToJson(Budget& budget, const Value& value, const JsonStyle& style);

// Keeps the order of keys; a repeated key keeps its first place and last value. Integers must fit 64 bits.
// `what` is named in errors. Throws EvalError.
Value ParseJson(Budget& budget, std::string_view text, const char* what);

}  // namespace vllm::jinja
