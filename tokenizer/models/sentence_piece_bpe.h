// SentencePiece's byte-pair encoding: any two neighbours whose text together is a piece merge, the piece of highest
// score first, then the leftmost. Read-only after construction, any thread. O(n) in the length of the text; O(n log n)
// where the vocabulary has unused pieces or is crafted for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/models/sentence_piece_model.h"
#include "tokenizer/models/token_model.h"
#include "tokenizer/models/token_trie.h"

namespace vllm {

struct SentencePieceBpeConfig {
  int32_t unk_id = -1;  // -1: characters outside the vocabulary are dropped
  bool byte_fallback = false;
  // Control, unknown and byte pieces merge as others do, and user-defined ones are not set apart: llama.cpp's way.
  bool all_pieces_merge = false;
};

class SentencePieceBpe : public TokenModel {
 public:
  // `scores` and `types` are by id. Throws TokenizerError.
  SentencePieceBpe(SentencePieceBpeConfig config, Vocabulary vocabulary, std::vector<float> scores,
                   std::vector<PieceType> types);

  void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const override;

 private:
  enum Memo : uint8_t { kUnasked, kWhole, kSplit };
  struct Splits;

  int32_t FindMergeable(std::string_view text) const;
  void EncodeChunk(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const;
  bool EncodeInWindows(std::string_view chunk, size_t window_size, ModelScratch& scratch,
                       std::vector<int32_t>& out) const;
  // Merges the symbols of `text` that start before `limit`; returns where they end.
  size_t Merge(std::string_view text, size_t limit, ModelScratch& scratch, Splits* splits) const;
  void AppendSymbol(std::string_view symbol, const Splits& splits, bool& after_unknown,
                    std::vector<int32_t>& out) const;

  SentencePieceBpeConfig config_;
  std::vector<uint32_t> ranks_;  // by id: 0 is the highest score; pieces of equal score have the same
  std::vector<PieceType> types_;
  std::vector<int32_t> fallback_ids_;
  TokenTrie user_defined_;
  bool has_unused_ = false;
  bool split_at_metaspace_ = false;
  // For every id whether encoding its own text gives just that id, as in Bpe.
  std::unique_ptr<std::atomic<uint8_t>[]> memo_;
};

}  // namespace vllm
