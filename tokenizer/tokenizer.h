// Text <-> token ids, exactly as Hugging Face `tokenizers` does it from tokenizer.json. Knows no engine and no model.
// Immutable after loading: all const methods may be called from any thread.
//
// On disk, as far as it is read here (everything else is ignored; "truncation" and "padding" too, as vLLM does):
//   {"added_tokens": [{"content", "single_word", "lstrip", "rstrip", "normalized", "special"}...],
//    "normalizer": N, "pre_tokenizer": P, "post_processor": Q, "decoder": D,
//    "model": M}
// M is described in model_json.h. N, P, Q, D are null or objects with a "type"; see normalizer.h, pre_tokenizer.h,
// post_processor.h and decoder.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm {

class TokenDecoder;
struct TokenizerParts;

class Tokenizer {
 public:
  ~Tokenizer();

  // From now on Encode gives up soon after the flag is set: tokenizing 100 MB takes seconds. Borrowed, may be null.
  // Call it before other threads use the tokenizer.
  void SetStop(const std::atomic<bool>* stop) { stop_ = stop; }

  // Text need not be trusted: ill-formed UTF-8 is replaced by U+FFFD first. Special tokens that are written out in the
  // text ("<|im_start|>") are recognized unless parse_special is false, which makes them ordinary text. Throws
  // EncodingStopped when the flag of SetStop is set, and std::bad_alloc.
  std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens, bool parse_special = true) const;
  // Ids that have no token are skipped. Always valid UTF-8.
  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // 1 + largest id.
  int32_t VocabSize() const;
  std::optional<int32_t> TokenToId(std::string_view token) const;
  // As written in the file ("Ġhello", "▁the", "<0x0A>"). The view lives as long as the tokenizer.
  std::optional<std::string_view> IdToToken(int32_t id) const;
  // Whether id is an added token marked special.
  bool IsSpecial(int32_t id) const;
  // "BPE byte-level", "BPE byte-fallback", "BPE", "Unigram", "WordPiece", ...
  std::string_view Kind() const;

  // For DecodeStream: what the decoder is given for `id`; nothing when it is to be skipped.
  std::optional<std::string_view> TokenForDecoding(int32_t id, bool skip_special_tokens) const;
  const TokenDecoder& decoder() const;

  // For the loaders of this directory.
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);

 private:
  std::unique_ptr<const TokenizerParts> parts_;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace vllm
