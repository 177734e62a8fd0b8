// Gives every variable of a template its slot, by the rules of Jinja2's compiler: which assignments a scope sees is
// decided before anything runs. Also refuses unknown filters and tests where Jinja2 does. Pure function, any thread.
#pragma once

#include "tokenizer/jinja/syntax/ast.h"

namespace vllm::jinja {

// Throws SyntaxError.
void ResolveScopes(Template& chat_template);

}  // namespace vllm::jinja
