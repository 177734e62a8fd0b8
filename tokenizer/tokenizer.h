// Converts text to token ids and back, as the library that defines the file format does: Hugging Face `tokenizers`,
// SentencePiece, tiktoken or llama.cpp. Does not depend on the engine. Only SetStop changes a loaded tokenizer, so any
// thread may call the const methods.
//
// tokenizer.json has these members; all others are ignored, including "truncation" and "padding", as in vLLM:
//   {"added_tokens": [{"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}...],
//    "normalizer": N, "pre_tokenizer": P, "post_processor": Q, "decoder": D,
//    "model": M}
// M is described in model_json.h. N, P, Q and D are null or objects with a "type"; see normalizer.h, pre_tokenizer.h,
// post_processor.h and token_decoder.h.
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

namespace vllm::tokenizer {

class TokenDecoder;
struct TokenizerParts;

// The tokens of a text, or of a pair of texts, with special tokens.
struct BoundedEncoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // of the tokens of a pair; empty: all 0
  bool was_cut = false;           // tokens were left out to keep the limit
};

class Tokenizer {
 public:
  ~Tokenizer();

  // Makes Encode throw EncodingStopped soon after the flag becomes true. Otherwise an interrupt would wait until a
  // long prompt is tokenized: 100 MB take seconds. The flag is borrowed and may be null. Must be called before other
  // threads use the tokenizer.
  void SetStop(const std::atomic<bool>* stop) { stop_ = stop; }

  // Accepts untrusted text: replaces ill-formed UTF-8 with U+FFFD first. Special tokens in the text ("<|im_start|>")
  // are recognized if parse_special is true and are ordinary text otherwise. Throws EncodingStopped (see SetStop) and
  // std::bad_alloc.
  std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens, bool parse_special = true) const;
  // Encode a text, or a pair of texts, with special tokens, in at most max_tokens tokens (at least the special ones).
  // Cut the end of the text, or of the longer of the two, as Hugging Face's "longest_first" does. EncodePair throws
  // TokenizerError if the file does not say how pairs are joined.
  BoundedEncoding EncodeBounded(std::string_view text, size_t max_tokens) const;
  BoundedEncoding EncodePair(std::string_view first, std::string_view second, size_t max_tokens) const;
  // Encodes a short text in which special tokens are ordinary text. Ignores SetStop.
  std::vector<int32_t> EncodeOrdinary(std::string_view text) const;
  // Skips ids that have no token. The result is always valid UTF-8.
  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // Returns 1 + the largest id.
  int32_t VocabSize() const;
  std::optional<int32_t> TokenToId(std::string_view token) const;
  // Returns the token as tokenizer.json would write it ("Ġhello", "▁the", "<0x0A>"). The view is valid as long as
  // the tokenizer exists.
  std::optional<std::string_view> IdToToken(int32_t id) const;
  // Returns true if `id` is an added token that is marked as special.
  bool IsSpecial(int32_t id) const;
  // Returns "byte-level BPE", "BPE with byte fallback", "BPE", "Unigram", "WordPiece", "tiktoken", ...
  std::string_view Kind() const;

  // For DecodeStream: returns the input of the decoder for `id`, or nullopt if Decode skips the id.
  std::optional<std::string_view> TokenForDecoding(int32_t id, bool skip_special_tokens) const;
  const TokenDecoder& decoder() const;

  // For the loaders.
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);

 private:
  std::vector<int32_t> IdsOf(std::string_view text, bool parse_special, const std::atomic<bool>* stop) const;

  std::unique_ptr<const TokenizerParts> parts_;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace vllm::tokenizer
