// Assigns a slot to every variable of a template by the rules of Jinja2's compiler, which decides before execution
// which assignments a scope sees. Also rejects unknown filters and tests where Jinja2 does. Any thread; the caller owns
// the tree.
#pragma once

#include "tokenizer/jinja/syntax/ast.h"

namespace vllm::tokenizer::jinja {

// Fills in the slots and layouts of the tree. Throws SyntaxError.
void ResolveScopes(Template& chat_template);

}  // namespace vllm::tokenizer::jinja
