// Builds the model from the member "model" of tokenizer.json. For the loader; one thread.
//   {"type": "BPE", "vocab": {token: id...}, "merges": ["a b"...] or [["a", "b"]...], "unk_token",
//    "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges"}
//   {"type": "Unigram", "vocab": [[token, score]...], "unk_id", "byte_fallback"}
//   {"type": "WordPiece", "vocab": {token: id...}, "unk_token", "continuing_subword_prefix",
//   "max_input_chars_per_word"}
//   {"type": "WordLevel", "vocab": {token: id...}, "unk_token"}
// If "type" is missing, as in older files, the other members determine the type.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/token_model.h"

namespace vllm::tokenizer {

class ModelJson {
 public:
  // Reads the type and, for BPE, the small members. Borrows the JSON of all members. Throws TokenizerError if the type
  // is unknown, or if a member that is read here is malformed or has an unsupported value.
  ModelJson(RawMembers members, std::string name_for_errors);

  // Returns true if the model can encode raw bytes instead of the byte-level alphabet.
  bool CanTakeBytes() const { return type_ == "BPE" && bpe_.CanTakeBytes(); }
  // Reads the other members and builds the model. With `take_bytes`, the model encodes raw bytes. Throws
  // TokenizerError. REQUIRES: !take_bytes || CanTakeBytes().
  std::unique_ptr<TokenModel> Make(bool take_bytes);
  // Returns the value for Tokenizer::Kind: "byte-level BPE", "Unigram", ...
  std::string Kind(bool byte_level) const;

 private:
  std::unique_ptr<TokenModel> MakeBpe(bool take_bytes);
  std::unique_ptr<TokenModel> MakeUnigram();
  std::unique_ptr<TokenModel> MakeWordPiece();
  // Returns the JSON of a large member. Throws TokenizerError if it is missing.
  std::string_view Large(std::string_view key) const;

  std::string name_;
  RawMembers members_;
  std::string type_;
  BpeConfig bpe_;
};

// Reads a vocabulary {token: id...}. Throws TokenizerError.
Vocabulary ReadVocabulary(std::string_view json, const std::string& name);

}  // namespace vllm::tokenizer
