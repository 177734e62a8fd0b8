// Python's str.format. Pure function; only one thread may use a runtime.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"

namespace vllm::tokenizer::jinja {

// Returns `format` with its {fields} replaced by values from `args`. Throws EvalError.
std::string BraceFormat(Runtime& runtime, std::string_view format, const Args& args);

}  // namespace vllm::tokenizer::jinja
