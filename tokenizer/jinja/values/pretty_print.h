// Python's pprint.pformat: breaks the repr() of a value into lines of at most 80 characters where possible, and sorts
// the keys of dicts. Pure function; only one thread may use a budget.
#pragma once

#include <string>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

// Throws EvalError for the same reasons as Repr.
std::string PrettyPrint(Budget& budget, const Value& value);

}  // namespace vllm::tokenizer::jinja
