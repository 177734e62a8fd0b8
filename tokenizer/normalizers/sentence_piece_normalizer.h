// How SentencePiece prepares a text: its character map, spaces written as U+2581, one in front, runs of them as one.
// User-defined pieces are passed over. Read-only after construction, any thread.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/models/sentence_piece_model.h"
#include "tokenizer/models/token_trie.h"
#include "tokenizer/normalizers/charsmap.h"
#include "tokenizer/normalizers/normalizer.h"

namespace vllm {

class SentencePieceNormalizer : public Normalizer {
 public:
  // `config` may show borrowed bytes: the character map is copied. Throws TokenizerError; `where` names the owner.
  SentencePieceNormalizer(const SentencePieceNormalization& config, TokenTrie user_defined, const std::string& where);

  void Apply(std::string& text) const override;

 private:
  struct Step {
    size_t consumed;
    std::string_view result;
  };
  Step Next(std::string_view text) const;

  SentencePieceNormalization config_;
  Charsmap charsmap_;
  TokenTrie user_defined_;
};

}  // namespace vllm
