// Python's operators and protocols on values: truth, equality, order, containment, length, iteration, arithmetic.
// Each spends fuel for the elements it looks at. All throw EvalError where Python raises. One thread per budget.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

enum class Op : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow, kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

bool Truthy(const Value& value);
bool Equals(Budget& budget, const Value& a, const Value& b);
// a < b.
bool Less(Budget& budget, const Value& a, const Value& b);
bool Contains(Budget& budget, const Value& item, const Value& container);
// `op` is one of the comparisons.
bool CompareValues(Budget& budget, Op op, const Value& a, const Value& b);

// Null when the value has no length.
std::optional<int64_t> Length(const Value& value);
bool IsIterable(const Value& value);
// The items of any iterable; an iterator is used up.
// Whoever has come to the end of an iterator's items calls this: throws what made it stop there, once.
void EndIterator(SequenceObject& iterator);
std::vector<Value> ToVector(Budget& budget, const Value& value);

// + - * / // % **; % on a string formats.
Value Arithmetic(Budget& budget, Op op, const Value& a, const Value& b);
Value Negate(const Value& value);

}  // namespace vllm::jinja
