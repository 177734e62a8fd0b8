// WordPiece, the model of BERT: the longest token first, the rest of the word likewise with the continuation prefix;
// a word that cannot be written so is unknown as a whole. Read-only after construction, any thread.
// O(n * longest token).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/token_model.h"
#include "tokenizer/models/token_trie.h"

namespace vllm {

struct WordPieceConfig {
  std::string unk_token;  // not in the vocabulary: unknown words are dropped
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

// WordLevel: the vocabulary is the words themselves.
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

}  // namespace vllm
