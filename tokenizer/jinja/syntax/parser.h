// Parses a template by the rules of Jinja2's parser with the loopcontrols extension and {% generation %}.
// Pure function, any thread.
#pragma once

#include <string_view>

#include "tokenizer/jinja/syntax/ast.h"

namespace vllm::tokenizer::jinja {

// Returns the syntax tree with all variables resolved. Throws SyntaxError.
Template ParseTemplate(std::string_view source);

}  // namespace vllm::tokenizer::jinja
