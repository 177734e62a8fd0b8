// Python's str() and repr() of values. Pure functions on one budget, one thread.
#pragma once

#include <string>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

// repr(float): the shortest digits that read back the same.
std::string FloatRepr(double value);
std::string Repr(Budget& budget, const Value& value);
std::string Str(Budget& budget, const Value& value);
// Appends str(value); for strings without a copy.
void AppendStr(Budget& budget, const Value& value, std::string& out);

}  // namespace vllm::jinja
