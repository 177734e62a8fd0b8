// Python's operators and protocols on values: truth, equality, order, containment, length, iteration, arithmetic.
// Functions with a budget spend fuel for the elements that they read. Where Python raises an exception, all functions
// except Length throw EvalError. They also throw it for integers that do not fit in 64 bits. Pure functions, except
// that iterating consumes iterators; only one thread may use a budget.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

enum class Op : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow, kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

bool Truthy(const Value& value);
bool Equals(Budget& budget, const Value& a, const Value& b);
// Returns a < b.
bool Less(Budget& budget, const Value& a, const Value& b);
bool Contains(Budget& budget, const Value& item, const Value& container);
// REQUIRES: `op` is kEq to kNotIn.
bool CompareValues(Budget& budget, Op op, const Value& a, const Value& b);

// Returns nullopt if the value has no length.
std::optional<int64_t> Length(const Value& value);
bool IsIterable(const Value& value);
// Call this after the last item of an iterator. If an error ended the iterator early, the first call throws that error.
void EndIterator(SequenceObject& iterator);
// Returns the items of an iterable. Consumes an iterator. Throws EvalError if the value is not iterable or is a loop.
std::vector<Value> ToVector(Budget& budget, const Value& value);

// Returns the result of `a op b`. REQUIRES: `op` is kAdd to kPow. If `a` is a string, kMod is Python's % formatting.
Value Arithmetic(Budget& budget, Op op, const Value& a, const Value& b);
Value Negate(const Value& value);

}  // namespace vllm::tokenizer::jinja
