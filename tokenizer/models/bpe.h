// Byte-pair encoding of one word (pre-token). Owned by the Tokenizer. Read-only after construction, any thread.
// As in Hugging Face `tokenizers` (models/bpe), it starts from single characters, or from bytes if words are raw bytes,
// and repeatedly merges the pair of lowest rank, leftmost first. O(n) in the length of the word, or O(n log n) with a
// vocabulary crafted to be slow.
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

namespace vllm::tokenizer {

struct BpeConfig {
  std::string unk_token;  // empty: drops characters that have no token and no byte fallback
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
  // Words are raw bytes, and the vocabulary is written in the byte-level alphabet.
  bool byte_level = false;

  // Returns true if the model can encode raw bytes. A prefix, a suffix and byte_fallback refer to characters of
  // the vocabulary, so a model with one of these settings needs words in the byte-level alphabet.
  bool CanTakeBytes() const {
    return continuing_subword_prefix.empty() && end_of_word_suffix.empty() && !byte_fallback;
  }
};

// Finds positions in a word that no token of a byte-level vocabulary crosses. No merge crosses such a position, so the
// parts between them can be merged separately. This saves time, because merging a part takes more than linear time in
// its length, unless the part is long enough to be merged in windows. Checks only positions between two non-ASCII
// characters, because vocabularies contain few of the character pairs that occur there.
// Read-only after construction, any thread.
class TokenBorders {
 public:
  // O(total bytes of the tokens).
  explicit TokenBorders(const Vocabulary& vocabulary);

  // Returns the end of the part of `word` that starts at `start`. REQUIRES: start < word.size().
  size_t PartEnd(std::string_view word, size_t start) const;

 private:
  static constexpr int kFilterBits = 19;

  void AddToken(std::string_view bytes);

  static size_t PairBit(uint64_t pair) {
    return static_cast<size_t>(pair * 0x9E3779B97F4A7C15ULL >> (64 - kFilterBits));
  }
  static size_t PartialBit(char last, char lead) {
    return static_cast<size_t>(static_cast<unsigned char>(last)) << 8 | static_cast<unsigned char>(lead);
  }

  // Bit set indexed by the hash of two characters. A bit is set if two characters with this hash are adjacent in some
  // token.
  std::vector<uint64_t> pairs_;
  // Bit set indexed by the two bytes at a border. A bit is set if some token contains only a part of a character there.
  std::array<uint64_t, 1024> partial_;
};

class Bpe : public TokenModel {
 public:
  // Throws TokenizerError if unk_token is neither empty nor in the vocabulary. REQUIRES: !byte_level || CanTakeBytes().
  Bpe(BpeConfig config, Vocabulary vocabulary, MergeTable merges);

  void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const override;

  const BpeConfig& config() const { return config_; }

 private:
  // The result of encoding the text of a token: not known yet, exactly that token, or other tokens.
  enum Memo : uint8_t { kUnknown, kWhole, kSplit };

  struct Reader {
    size_t position = 0;
    bool pending_unk = false;
  };

  // Returns true if memo_ says that encoding the text of `id` gives exactly that id.
  bool IsKnownWhole(int32_t id) const {
    return memo_ && memo_[static_cast<size_t>(id)].load(std::memory_order_relaxed) == kWhole;
  }
  // Returns the id of the token whose text is `word`, or -1.
  int32_t FindWord(std::string_view word, ModelScratch& scratch) const;
  // Appends the tokens of `part`. `whole` is the token whose text is `part`, or -1 if there is none or it was not
  // looked up. Merging `part` may produce other tokens.
  void EncodePart(std::string_view part, int32_t whole, ModelScratch& scratch, std::vector<int32_t>& out) const;
  void EncodeChunk(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const;
  void EncodeLong(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const;
  bool EncodeInWindows(std::string_view chunk, size_t window_size, ModelScratch& scratch,
                       std::vector<int32_t>& out) const;
  // Appends to scratch.ids until it has about `num_symbols` symbols or the word ends.
  void ReadSymbols(std::string_view word, Reader& reader, size_t num_symbols, ModelScratch& scratch) const;
  void MergeShort(std::vector<int32_t>& ids) const;
  // Merges scratch.ids and leaves -1 for each symbol that was merged into the one before it. Uses MergeMedium or
  // MergeLong.
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
  // One Memo per id, computed on first use. Two threads may compute the same entry; they get the same result. Null if
  // the model has a prefix or suffix.
  std::unique_ptr<std::atomic<uint8_t>[]> memo_;
};

}  // namespace vllm::tokenizer
