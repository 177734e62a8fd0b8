// The grammars and lists of texts that requests may have, as rules of a grammar. One thread per builder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/json_schema/schema_compiler.h"

namespace vllm {

// Adds a grammar in GBNF, or in Lark if no rule has `::=`.
// Returns the symbol of its texts. Throws RequestError `grammar: <why> at line <n>, column <n>`; GrammarLimitError.
SymbolId AddGrammarText(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary,
                        const JsonSchemaOptions& options);

// Adds the choice between texts. Throws RequestError `choice: <why>`; GrammarLimitError.
SymbolId AddTextChoice(GrammarBuilder& builder, std::span<const std::string> texts);

// Adds the texts that `pattern` matches as a whole. Throws RequestError `regex: <why> at character <n>`;
// GrammarLimitError.
SymbolId AddWholePattern(GrammarBuilder& builder, std::string_view pattern);

// Returns the grammar of a symbol's texts. Throws RequestError `<kind>: allows no text`; GrammarLimitError.
Grammar FinishGrammar(GrammarBuilder& builder, SymbolId symbol, std::string_view kind);

}  // namespace vllm
