// The normalizer of SentencePiece. As the model file requires, it applies the character map, collapses runs of spaces,
// adds a space before or after the text and writes spaces as U+2581. It does not apply the map to user-defined pieces.
// Owned by the Tokenizer. Read-only after construction, any thread.
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
  // Copies the character map of `config`. Throws TokenizerError like Charsmap. `where` names the file in error
  // messages.
  SentencePieceNormalizer(const SentencePieceNormalization& config, TokenTrie user_defined, const std::string& where);

  void Apply(std::string& text) const override;

 private:
  struct Step {
    size_t consumed;
    std::string_view result;
  };
  // Normalizes the start of `text`: one user-defined piece, one match of a rule, or one character.
  Step Next(std::string_view text) const;

  SentencePieceNormalization config_;
  Charsmap charsmap_;
  TokenTrie user_defined_;
};

}  // namespace vllm::tokenizer
