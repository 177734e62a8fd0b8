// Jinja2's tests, `value is name(args)`. Pure functions, except that the test `in` consumes iterators; only one thread
// may use a runtime.
#pragma once

#include <string_view>

#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

bool IsTest(std::string_view name);
// Returns the result of the test. Throws EvalError, also if there is no such test.
bool CallTest(Runtime& runtime, std::string_view name, const Value& value, const Args& args);

}  // namespace vllm::tokenizer::jinja
