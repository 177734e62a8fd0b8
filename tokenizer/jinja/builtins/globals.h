// The functions every template sees: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
// One thread per runtime.
#pragma once

#include <string_view>

#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

bool IsGlobalFunction(std::string_view name);
Value CallGlobalFunction(Runtime& runtime, std::string_view name, const Args& args);

// Text from a template or a message, made fit for an error: printable, at most a line long.
std::string EscapeForError(std::string_view text);

}  // namespace vllm::jinja
