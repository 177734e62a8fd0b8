// Fuzzes the reader of GBNF and Lark grammars. The input is a text, a zero byte, and bytes that choose a path through
// the texts of its grammar.
#include "engine/config/errors.h"
#include "engine/structured_output/dialects/grammar_dialect.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/grammar_walk.h"

namespace vllm {

void FuzzOne(std::string_view input) {
  const size_t end = input.find('\0');
  GrammarVocabulary vocabulary;
  vocabulary.special_tokens = {{0, 9}};
  try {
    GrammarBuilder builder;
    const SymbolId symbol = AddGrammarText(builder, input.substr(0, end), vocabulary, {});
    Grammar grammar = FinishGrammar(builder, symbol, "grammar_dialect");
    if (end != input.npos) WalkGrammar(std::move(grammar), input.substr(end + 1));
  } catch (const RequestError&) {
  } catch (const GrammarLimitError&) {
  }
}

}  // namespace vllm
