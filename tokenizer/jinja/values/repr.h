// Python's str() and repr() of values. Functions with a budget throw EvalError if one of its limits is exceeded or
// namespaces are nested too deeply. Pure functions; only one thread may use a budget.
#pragma once

#include <string>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

// Returns repr(float): the shortest decimal that reads back as the same value.
std::string FloatRepr(double value);
std::string Repr(Budget& budget, const Value& value);
std::string Str(Budget& budget, const Value& value);
// Appends str(value) to `out` without a temporary copy.
void AppendStr(Budget& budget, const Value& value, std::string& out);

}  // namespace vllm::tokenizer::jinja
