// GrammarCompiler: makes the grammars that requests ask for, for one model's vocabulary. Equal constraints are compiled
// once while they are among the last kMaxGrammars. Owned by the InputProcessor; front-end thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "engine/request/sampling_params.h"
#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/structured_output/grammar_matcher.h"

namespace vllm::tokenizer {
class Tokenizer;
}

namespace vllm {

class GrammarCompiler {
 public:
  static constexpr size_t kMaxGrammars = 32;

  // `tokenizer` may be null and must outlive this object and the grammars.
  GrammarCompiler(const tokenizer::Tokenizer* tokenizer, int64_t vocab_size)
      : tokenizer_(tokenizer), vocab_size_(vocab_size) {}

  // Throws RequestError if the constraint is rejected (see CompileGrammar), if there is no tokenizer, or if its tokens
  // do not stand for bytes.
  std::shared_ptr<const CompiledGrammar> Compile(const StructuredOutputsParams& params);

 private:
  // REQUIRES: trie_ is not null.
  GrammarVocabulary Vocabulary() const;

  const tokenizer::Tokenizer* tokenizer_;
  int64_t vocab_size_;
  std::shared_ptr<const VocabTrie> trie_;  // null: not needed yet
  std::list<std::pair<StructuredOutputsParams, std::shared_ptr<const CompiledGrammar>>> grammars_;  // last used first
};

}  // namespace vllm
