// Tokens -> syntax tree, by the rules of Jinja2's parser with the loopcontrols extension and {% generation %}.
// Pure function, any thread.
#pragma once

#include <string_view>

#include "tokenizer/jinja/syntax/ast.h"

namespace vllm::jinja {

// Variables are resolved too. Throws SyntaxError.
Template ParseTemplate(std::string_view source);

}  // namespace vllm::jinja
