// The vocabulary that a GGUF file carries in its metadata, and the tokenizer that llama.cpp would make of it.
// Filled by the reader of the file; plain values, no thread of its own. What a file does not say stays empty: the
// defaults, which differ from model to model, are applied here.
//
//   field                     key of the file
//   model                     tokenizer.ggml.model: "llama" (SentencePiece BPE), "gpt2" (byte-level BPE),
//                             "t5" (Unigram), "bert" (WordPiece)
//   pre                       tokenizer.ggml.pre: "default", "llama-bpe", "qwen2", ... : how text is split into words
//   tokens, scores            tokenizer.ggml.tokens, .scores: as many scores as tokens, or none
//   token_types               tokenizer.ggml.token_type: as many as tokens, or none; see GgufTokenType
//   merges                    tokenizer.ggml.merges: "left right"
//   bos_id ... mask_id        tokenizer.ggml.bos_token_id, eos_, eot_, unknown_, padding_, seperator_ (sic), cls_,
//   mask_ add_bos ... add_sep       tokenizer.ggml.add_bos_token, add_eos_token, add_sep_token add_space_prefix
//   tokenizer.ggml.add_space_prefix remove_extra_whitespaces  tokenizer.ggml.remove_extra_whitespaces
//   precompiled_charsmap      tokenizer.ggml.precompiled_charsmap: bytes
//   chat_template             tokenizer.chat_template; not used here
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace vllm {

enum GgufTokenType : int32_t {
  kGgufNormal = 1,
  kGgufUnknown = 2,
  kGgufControl = 3,
  kGgufUserDefined = 4,
  kGgufUnused = 5,
  kGgufByte = 6,
};

// All views are borrowed: they must live until MakeGgufTokenizer has returned.
struct GgufVocabulary {
  std::string model;
  std::string pre;
  std::vector<std::string_view> tokens;
  std::vector<float> scores;
  std::vector<int32_t> token_types;
  std::vector<std::string_view> merges;

  // As the file has them: out of range is refused by MakeGgufTokenizer, except UINT32_MAX, which means none.
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
  std::string_view precompiled_charsmap;
  std::string_view chat_template;
};

// Throws TokenizerError: the vocabulary contradicts itself, or its model or pre is not known.
std::unique_ptr<Tokenizer> MakeGgufTokenizer(const GgufVocabulary& vocabulary, const std::string& name_for_errors);

}  // namespace vllm
