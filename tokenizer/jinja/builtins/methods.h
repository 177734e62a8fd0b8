// The methods that a template may call on str, bytes, list, tuple, dict, range, float and cycler values. FindMethod
// also knows the methods of loops, which the evaluator calls. Only one thread may use a runtime.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

// kUnsafe means that Python has the method but the sandbox rejects it (append, update, ...).
enum class MethodAccess { kNone, kSafe, kUnsafe };
MethodAccess FindMethod(const Value& object, std::string_view name);

// Throws EvalError. REQUIRES: FindMethod(self, name) is kSafe, and `self` is not a loop.
Value CallMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args);

// string_methods.cc implements these functions for the methods of str and for bytes.decode and bytes.hex.
using StringMethod = Value (*)(Runtime& runtime, const Value& self, const Args& args);
// Returns null if there is no such method. Python's str has a few more.
StringMethod FindStringMethod(std::string_view name);
bool IsBytesMethod(std::string_view name);
Value CallBytesMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args);

}  // namespace vllm::tokenizer::jinja
