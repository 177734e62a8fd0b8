// The methods of str, bytes, list, tuple, dict, range, cycler and namespace values a template may call. One thread per
// runtime.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

// kUnsafe: it exists in Python but the sandbox refuses it (append, update, ...).
enum class MethodAccess { kNone, kSafe, kUnsafe };
MethodAccess FindMethod(const Value& object, std::string_view name);

// REQUIRES: FindMethod(self, name) is kSafe.
Value CallMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args);

// string_methods.cc: str, and bytes.decode(encoding, errors) and bytes.hex().
using StringMethod = Value (*)(Runtime& runtime, const Value& self, const Args& args);
// Null when str has no such method.
StringMethod FindStringMethod(std::string_view name);
bool IsBytesMethod(std::string_view name);
Value CallBytesMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args);

}  // namespace vllm::jinja
