#include "engine/structured_output/grammar_compiler.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/errors.h"
#include "engine/structured_output/compile_grammar.h"
#include "engine/structured_output/continuation_tokens.h"
#include "tokenizer/token_bytes.h"
#include "tokenizer/tokenizer.h"

namespace vllm {

GrammarVocabulary GrammarCompiler::Vocabulary() const {
  GrammarVocabulary vocabulary;
  vocabulary.find = [this](std::string_view text) { return tokenizer_->TokenToId(text); };
  vocabulary.bytes = [this](int32_t id) -> std::optional<std::string> {
    if (id < 0 || id >= vocab_size_) return std::nullopt;
    return std::string(trie_->BytesOf(id));
  };
  return vocabulary;
}

std::shared_ptr<const CompiledGrammar> GrammarCompiler::Compile(const StructuredOutputsParams& params) {
  const auto it =
      std::find_if(grammars_.begin(), grammars_.end(), [&](const auto& entry) { return entry.first == params; });
  if (it != grammars_.end()) {
    grammars_.splice(grammars_.begin(), grammars_, it);
    return it->second;
  }
  if (tokenizer_ == nullptr) throw RequestError("structured_outputs: needs a tokenizer (none is loaded)");
  if (trie_ == nullptr) {
    std::optional<std::vector<std::string>> bytes = tokenizer::TokenBytes(*tokenizer_);
    if (!bytes) {
      throw RequestError(
          "structured_outputs: not supported with this tokenizer, whose tokens are not pieces of text (" +
          std::string(tokenizer_->Kind()) + ")");
    }
    trie_ = std::make_shared<const VocabTrie>(std::move(*bytes), vocab_size_);
  }
  Grammar grammar = CompileGrammar(params, Vocabulary());
  std::shared_ptr<const CompiledGrammar> compiled;
  try {
    compiled = std::make_shared<const CompiledGrammar>(std::move(grammar), trie_,
                                                       [tokenizer = tokenizer_, trie = trie_](std::string_view text) {
                                                         return ContinuationTokens(*tokenizer, *trie, text);
                                                       });
  } catch (const std::runtime_error& error) {
    throw RequestError(std::string("structured_outputs: ") + error.what());
  }
  if (grammars_.size() == kMaxGrammars) grammars_.pop_back();
  grammars_.emplace_front(params, compiled);
  return compiled;
}

}  // namespace vllm
