// Python's pprint.pformat: a value's repr() laid out in lines of at most 80 characters, the keys of dicts sorted.
// Pure functions on one budget.
#pragma once

#include <string>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

// Throws EvalError when a limit is met.
std::string PrettyPrint(Budget& budget, const Value& value);

}  // namespace vllm::jinja
