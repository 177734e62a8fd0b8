// Lark, in llguidance's dialect: see lark_document.h for its syntax. A terminal is a regular expression, whose texts
// are all those that match, also where a longer one would match. Between terminals of rules, and after the last one,
// there may be the texts of %ignore. One thread per builder.
//
// stop="x" on a rule means that its text ends before the first x. llguidance lets the model write x and takes it back.
#pragma once

#include <string_view>

#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/json_schema/schema_compiler.h"

namespace vllm {

// Adds the rules of a grammar and returns the symbol of `start`. Throws RequestError
// `grammar: <why> at line <n>, column <n>`; GrammarLimitError.
SymbolId AddLark(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary,
                 const JsonSchemaOptions& options);

}  // namespace vllm
