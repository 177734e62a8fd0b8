// Byte-pair encoding of one word (pre-token). Read-only after construction, any thread.
// The rule is the reference's (Hugging Face `tokenizers`, models/bpe): start from single characters, always merge the
// pair of lowest rank, leftmost first. O(n) in the length of the word; O(n log n) where the vocabulary is crafted for
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/merge_table.h"
#include "tokenizer/models/token_model.h"

namespace vllm {

struct BpeConfig {
  std::string unk_token;  // empty: characters outside the vocabulary are dropped
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
  // Words come as the bytes themselves and the vocabulary is written in the byte-level alphabet.
  bool byte_level = false;

  // Prefix, suffix and byte_fallback speak of the characters of the vocabulary, so these need words written in them.
  bool CanTakeBytes() const {
    return continuing_subword_prefix.empty() && end_of_word_suffix.empty() && !byte_fallback;
  }
};

// Places of a word that no token of a byte-level vocabulary reaches across, so that no merge crosses them and the parts
// can be merged each by itself; merging costs more than their lengths. Only places between two characters outside ASCII
// are looked at: there a vocabulary knows few of the pairs that texts have. Read-only after construction, any thread.
class TokenBorders {
 public:
  // O(bytes of the tokens).
  explicit TokenBorders(const Vocabulary& vocabulary);

  // End of the part of `word` that starts at `start`. REQUIRES: start < word.size().
  size_t PartEnd(std::string_view word, size_t start) const;

 private:
  static constexpr int kFilterBits = 19;

  void AddToken(std::string_view bytes);

  static size_t Bit(uint64_t pair) { return static_cast<size_t>(pair * 0x9E3779B97F4A7C15ULL >> (64 - kFilterBits)); }
  static size_t Row(char last, char lead) {
    return static_cast<size_t>(static_cast<unsigned char>(last)) << 8 | static_cast<unsigned char>(lead);
  }

  std::vector<uint64_t> pairs_;  // a bit by the hash of two characters that stand together in a token
  std::array<uint64_t, 1024>
      partial_;  // by the bytes at the border, where a token has only a part of a character there
};

class Bpe : public TokenModel {
 public:
  // Throws TokenizerError when unk_token is not in the vocabulary. REQUIRES: !byte_level || CanTakeBytes().
  Bpe(BpeConfig config, Vocabulary vocabulary, MergeTable merges);

  void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const override;

  const BpeConfig& config() const { return config_; }

 private:
  enum Memo : uint8_t { kUnknown, kWhole, kSplit };

  // How far the characters of a word have been read.
  struct Reader {
    size_t position = 0;
    bool pending_unk = false;
  };

  bool IsKnownWhole(int32_t id) const {
    return memo_ && memo_[static_cast<size_t>(id)].load(std::memory_order_relaxed) == kWhole;
  }
  int32_t FindWord(std::string_view word, ModelScratch& scratch) const;
  // Appends what `part` merges to. `whole` is the token of all of it, which it may or may not merge to; -1: none.
  void EncodePart(std::string_view part, int32_t whole, ModelScratch& scratch, std::vector<int32_t>& out) const;
  void EncodeChunk(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const;
  void EncodeLong(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const;
  bool EncodeInWindows(std::string_view chunk, size_t window_size, ModelScratch& scratch,
                       std::vector<int32_t>& out) const;
  // Appends to scratch.ids until there are about `num_symbols` or the word is at its end.
  void ReadSymbols(std::string_view word, Reader& reader, size_t num_symbols, ModelScratch& scratch) const;
  void MergeShort(std::vector<int32_t>& ids) const;
  // Leaves -1 in scratch.ids where a symbol became part of the one before; these are the two ways to do it.
  void MergeLinked(ModelScratch& scratch) const;
  void MergeMedium(ModelScratch& scratch) const;
  void MergeLong(ModelScratch& scratch) const;

  BpeConfig config_;
  MergeTable merges_;
  int32_t unk_id_ = -1;
  std::vector<int32_t> ascii_ids_;     // byte_level: the 256 bytes; otherwise U+0000..U+007F
  std::vector<int32_t> fallback_ids_;  // "<0x00>".."<0xFF>", -1 where absent
  bool split_at_metaspace_ = false;
  std::optional<TokenBorders> borders_;
  // For every id whether encoding its own text gives just that id: found out when first asked for, the same answer
  // whichever thread finds it.
  std::unique_ptr<std::atomic<uint8_t>[]> memo_;
};

}  // namespace vllm
