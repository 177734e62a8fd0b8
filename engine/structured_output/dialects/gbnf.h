// GBNF, the grammars of llama.cpp (grammars/README.md there), which xgrammar's EBNF extends. A rule ends where the next
// one begins, so its text may have line breaks everywhere. Rules may be recursive on the left. One thread per builder.
//
//   root  ::= "yes" | [a-z]+ (", " item){2,3}   # a comment
//   item  ::= . [^\n"]* <think> !</think>*
#pragma once

#include <string_view>

#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/structured_output/grammar/grammar.h"

namespace vllm {

// Adds the rules of a grammar and returns the symbol of `root`. Throws RequestError
// `grammar: <why> at line <n>, column <n>`; GrammarLimitError.
SymbolId AddGbnf(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary);

}  // namespace vllm
