// The functions that every template can call: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
// Only one thread may use a runtime.
#pragma once

#include <string_view>

#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

bool IsGlobalFunction(std::string_view name);
// Throws EvalError, also if there is no such function.
Value CallGlobalFunction(Runtime& runtime, std::string_view name, const Args& args);

// Makes outside text (from a template, a message or a path) safe for an error message: escapes unprintable characters
// and invalid UTF-8, and truncates the result to about 300 bytes. Any thread.
std::string EscapeForError(std::string_view text);

}  // namespace vllm::tokenizer::jinja
