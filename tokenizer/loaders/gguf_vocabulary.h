// The vocabulary in the metadata of a GGUF file, and the tokenizer that llama.cpp would build from it. Plain values;
// the GGUF reader fills them. Fields that the file does not set stay empty. MakeGgufTokenizer applies the defaults,
// which depend on the model.
//
// clang-format off
//   field                     key in the file
//   model                     tokenizer.ggml.model: "llama" (SentencePiece BPE), "gpt2" (byte-level BPE),
//                             "t5" (Unigram), "bert" (WordPiece)
//   pre                       tokenizer.ggml.pre: the name of the pre-tokenizer ("default", "llama-bpe", "qwen2", ...)
//   tokens, scores            tokenizer.ggml.tokens, .scores: one score per token, or none
//   token_types               tokenizer.ggml.token_type: one type per token, or none; see GgufTokenType
//   merges                    tokenizer.ggml.merges: "left right"
//   bos_id ... mask_id        tokenizer.ggml.bos_token_id, eos_, eot_, unknown_, padding_, seperator_ (sic), cls_,
//                             mask_
//   add_bos ... add_sep       tokenizer.ggml.add_bos_token, add_eos_token, add_sep_token
//   add_space_prefix          tokenizer.ggml.add_space_prefix
//   remove_extra_whitespaces  tokenizer.ggml.remove_extra_whitespaces
//   lowercase, strip_accents  tokenizer.ggml.normalizer.lowercase, .strip_accents; only "bert"
//   precompiled_charsmap      tokenizer.ggml.precompiled_charsmap: bytes
//   chat_template             tokenizer.chat_template; not used here
// clang-format on
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace vllm::tokenizer {

enum GgufTokenType : int32_t {
  kGgufNormal = 1,
  kGgufUnknown = 2,
  kGgufControl = 3,
  kGgufUserDefined = 4,
  kGgufUnused = 5,
  kGgufByte = 6,
};

// All views are borrowed. They must be valid until MakeGgufTokenizer returns.
struct GgufVocabulary {
  std::string model;
  std::string pre;
  std::vector<std::string_view> tokens;
  std::vector<float> scores;
  std::vector<int32_t> token_types;
  std::vector<std::string_view> merges;

  // Token ids. UINT32_MAX means that there is no such token. MakeGgufTokenizer rejects other out-of-range values of the
  // ids that it uses: bos, eos, unk, sep and cls, depending on the model.
  std::optional<int64_t> bos_id;
  std::optional<int64_t> eos_id;
  std::optional<int64_t> eot_id;
  std::optional<int64_t> unk_id;
  std::optional<int64_t> pad_id;
  std::optional<int64_t> sep_id;
  std::optional<int64_t> cls_id;
  std::optional<int64_t> mask_id;

  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_sep;
  std::optional<bool> add_space_prefix;
  std::optional<bool> remove_extra_whitespaces;
  std::optional<bool> lowercase;
  std::optional<bool> strip_accents;
  std::string_view precompiled_charsmap;
  std::string_view chat_template;
};

// Throws TokenizerError if the vocabulary is empty or inconsistent, or if its model or pre is unknown.
std::unique_ptr<Tokenizer> MakeGgufTokenizer(const GgufVocabulary& vocabulary, const std::string& name_for_errors);

}  // namespace vllm::tokenizer
