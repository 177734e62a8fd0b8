// Python's pprint.pformat: lays out the repr() of a value in lines of at most 80 characters and sorts the keys of
// dicts. Pure function; one thread per budget.
#pragma once

#include <string>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

// Throws EvalError if a limit of the budget is exceeded.
std::string PrettyPrint(Budget& budget, const Value& value);

}  // namespace vllm::tokenizer::jinja
