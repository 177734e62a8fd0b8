// The normalizer of SentencePiece: applies the character map, writes spaces as U+2581, adds one in front and collapses
// runs of spaces. Leaves user-defined pieces unchanged. Read-only after construction, any thread.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/models/sentence_piece_model.h"
#include "tokenizer/models/token_trie.h"
#include "tokenizer/normalizers/charsmap.h"
#include "tokenizer/normalizers/normalizer.h"

namespace vllm::tokenizer {

class SentencePieceNormalizer : public Normalizer {
 public:
  // Copies the character map of `config`. Throws TokenizerError; `where` names the owner in errors.
  SentencePieceNormalizer(const SentencePieceNormalization& config, TokenTrie user_defined, const std::string& where);

  void Apply(std::string& text) const override;

 private:
  struct Step {
    size_t consumed;
    std::string_view result;
  };
  // Normalizes the start of `text`: one user-defined piece, match of a rule, or character.
  Step Next(std::string_view text) const;

  SentencePieceNormalization config_;
  Charsmap charsmap_;
  TokenTrie user_defined_;
};

}  // namespace vllm::tokenizer
