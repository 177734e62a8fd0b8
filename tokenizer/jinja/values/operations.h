// Python's operators and protocols on values: truth, equality, order, containment, length, iteration, arithmetic.
// Each function spends fuel for the elements it looks at, and throws EvalError where Python raises an exception.
// Pure functions except that iterating consumes iterators; one thread per budget.
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

// Returns null if the value has no length.
std::optional<int64_t> Length(const Value& value);
bool IsIterable(const Value& value);
// Call this after the last item of an iterator. If an error ended the iterator early, throws that error, once.
void EndIterator(SequenceObject& iterator);
// Returns the items of any iterable. Consumes an iterator.
std::vector<Value> ToVector(Budget& budget, const Value& value);

// Evaluates a op b. REQUIRES: `op` is kAdd to kPow. With a string on the left, % formats.
Value Arithmetic(Budget& budget, Op op, const Value& a, const Value& b);
Value Negate(const Value& value);

}  // namespace vllm::tokenizer::jinja
