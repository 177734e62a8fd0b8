// SentencePiece's byte-pair encoding. Two adjacent symbols merge if they form a piece. The pair whose piece has the
// highest score merges first, and the leftmost pair if scores are equal. Owned by the Tokenizer. Read-only after
// construction, any thread. O(n) in the length of the text, or O(n log n) if the vocabulary has unused pieces or is
// crafted to be slow.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/models/sentence_piece_model.h"
#include "tokenizer/models/token_model.h"
#include "tokenizer/models/token_trie.h"

namespace vllm::tokenizer {

struct SentencePieceBpeConfig {
  int32_t unk_id = -1;  // -1: drops characters that have no token and no byte fallback
  bool byte_fallback = false;
  // As in llama.cpp: pieces of every type are treated like normal pieces.
  bool all_pieces_merge = false;
};

class SentencePieceBpe : public TokenModel {
 public:
  // `scores` and `types` are indexed by id. Throws TokenizerError if unk_id is out of range or a score is NaN or
  // outside -3e38..3e38.
  SentencePieceBpe(SentencePieceBpeConfig config, Vocabulary vocabulary, std::vector<float> scores,
                   std::vector<PieceType> types);

  void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const override;

 private:
  // The result of encoding the text of a piece: not known yet, exactly that piece, or other pieces.
  enum Memo : uint8_t { kUnknown, kWhole, kSplit };
  struct Splits;

  // Returns the id of the piece `text` if merges may produce it, or -1.
  int32_t FindMergeable(std::string_view text) const;
  void EncodeChunk(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const;
  bool EncodeInWindows(std::string_view chunk, size_t window_size, ModelScratch& scratch,
                       std::vector<int32_t>& out) const;
  // Merges the symbols of `text` that start before byte `limit`. Returns the byte at which they end.
  size_t Merge(std::string_view text, size_t limit, ModelScratch& scratch, Splits* splits) const;
  // Appends the ids of a merged symbol: its piece, the pieces it is split into, byte tokens or the unknown token.
  void AppendSymbol(std::string_view symbol, const Splits& splits, bool& after_unknown,
                    std::vector<int32_t>& out) const;

  SentencePieceBpeConfig config_;
  std::vector<uint32_t> ranks_;  // by id; rank 0 has the highest score, equal scores have equal ranks
  std::vector<PieceType> types_;
  std::vector<int32_t> fallback_ids_;
  TokenTrie user_defined_;
  bool has_unused_ = false;
  bool split_at_metaspace_ = false;
  // One Memo per id, computed on first use.
  std::unique_ptr<std::atomic<uint8_t>[]> memo_;
};

}  // namespace vllm::tokenizer
