// The arguments of a call, and their binding to parameter names by Python's rules. Plain values; one thread at a time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;

  const Value* Keyword(std::string_view name) const;
};

// The arguments of a call, indexed by parameter.
class BoundArgs {
 public:
  // Borrows `args`. The first `num_required` names must have an argument. Throws EvalError for a missing, unknown,
  // repeated or surplus argument; the message names `function`.
  BoundArgs(const char* function, const Args& args, std::initializer_list<const char*> names, size_t num_required = 0);

  // Returns null if the argument is absent.
  const Value* operator[](size_t index) const { return values_[index]; }
  // Returns null if the argument is absent or None.
  const Value* NotNone(size_t index) const;
  // Int and Bool return `fallback` if the argument is absent. Int throws EvalError unless the argument is an integer.
  int64_t Int(size_t index, int64_t fallback) const;
  bool Bool(size_t index, bool fallback) const;
  // Throws EvalError unless the argument is a string.
  const std::string& Text(size_t index) const;

 private:
  const char* function_;
  std::vector<const Value*> values_;
};

}  // namespace vllm::tokenizer::jinja
