// Byte-pair encoding of one word (pre-token). Read-only after construction, any thread; what one call needs to work in
// is lent by the caller as a BpeScratch.
// The rule is the reference's (Hugging Face `tokenizers`, models/bpe): start from single characters, always merge the
// pair of lowest rank, leftmost first. O(n log n) in the length of the word.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/merge_table.h"
#include "tokenizer/vocabulary.h"

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

// Buffers that keep their memory from word to word.
struct BpeScratch {
  std::vector<int32_t> ids;
  std::vector<uint32_t> previous;
  std::vector<uint32_t> next;
  std::vector<MergeTable::Merge> merges;
  std::vector<uint64_t> heap;
  std::string text;
};

class Bpe {
 public:
  // Throws TokenizerError when unk_token is not in the vocabulary. REQUIRES: !byte_level || CanTakeBytes().
  Bpe(BpeConfig config, Vocabulary vocabulary, MergeTable merges);

  // Appends the ids of `word`. REQUIRES: word is valid UTF-8 unless byte_level.
  void Encode(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;

  const BpeConfig& config() const { return config_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  enum Memo : uint8_t { kUnknown, kWhole, kSplit };

  int32_t FindWord(std::string_view word, BpeScratch& scratch) const;
  void EncodeChunk(std::string_view chunk, BpeScratch& scratch, std::vector<int32_t>& out) const;
  void FirstSymbols(std::string_view word, BpeScratch& scratch) const;
  void MergeShort(std::vector<int32_t>& ids) const;
  void MergeLong(BpeScratch& scratch) const;
  bool NoTokenContinuesIntoMetaspace() const;

  BpeConfig config_;
  Vocabulary vocabulary_;
  MergeTable merges_;
  int32_t unk_id_ = -1;
  std::vector<int32_t> ascii_ids_;     // byte_level: the 256 bytes; otherwise U+0000..U+007F
  std::vector<int32_t> fallback_ids_;  // "<0x00>".."<0xFF>", -1 where absent
  bool split_at_metaspace_ = false;
  // For every id whether encoding its own text gives just that id: found out when first asked for, the same answer
  // whichever thread finds it.
  std::unique_ptr<std::atomic<uint8_t>[]> memo_;
};

}  // namespace vllm
