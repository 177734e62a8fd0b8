// WordPiece, the model of BERT: takes the longest token at the start of a word, then repeatedly the longest token with
// the continuation prefix. A word that cannot be split in this way becomes one unknown token. O(n * longest token).
// Owned by the Tokenizer. Read-only after construction, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/token_model.h"
#include "tokenizer/models/token_trie.h"

namespace vllm::tokenizer {

struct WordPieceConfig {
  std::string unk_token;  // if it is not in the vocabulary, unknown words are dropped
  std::string continuing_subword_prefix;
  size_t max_input_chars_per_word = 100;  // longer words are unknown
};

class WordPiece : public TokenModel {
 public:
  WordPiece(WordPieceConfig config, Vocabulary vocabulary);

  void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const override;

 private:
  WordPieceConfig config_;
  int32_t unk_id_;
  TokenTrie trie_;
  uint32_t continuing_root_;
};

// A model whose tokens are whole words.
class WordLevel : public TokenModel {
 public:
  WordLevel(const std::string& unk_token, Vocabulary vocabulary)
      : TokenModel(std::move(vocabulary)), unk_id_(vocabulary_.Find(unk_token)) {}

  void Encode(std::string_view word, ModelScratch&, std::vector<int32_t>& out) const override {
    const int32_t id = vocabulary_.Find(word);
    if (id >= 0 || unk_id_ >= 0) out.push_back(id >= 0 ? id : unk_id_);
  }

 private:
  int32_t unk_id_;
};

}  // namespace vllm::tokenizer
