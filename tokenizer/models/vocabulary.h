// A model's vocabulary: token string <-> id. Tokens are stored as tokenizer.json would write them. Owned by the model.
// A loader fills it. Afterwards it is read-only, and any thread may use it.
// Invariant: Find returns one id per token, and TokenOf returns at most one token per id, even if the file has several.
// Tokens that would be more than kMaxProbes slots after the slot that their hash selects are rejected, so that a file
// crafted for collisions does not load slowly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

class Vocabulary {
 public:
  static constexpr int64_t kMaxId = (1 << 24) - 1;

  // Reserves memory for `num_tokens` tokens with `num_bytes` of text in total.
  explicit Vocabulary(size_t num_tokens = 0, size_t num_bytes = 0);

  // If a token is repeated, its later id wins. Throws TokenizerError if the id is out of range, too many tokens
  // collide, or the tokens are too long in total.
  void Add(std::string_view token, int64_t id);
  // For vocabularies that are lists. Like Add, but TokenOf returns a repeated token for each of its ids. Find returns
  // its later id only if `replace` is set.
  void AddListed(std::string_view token, int64_t id, bool replace);
  // Prepares TokenOf and IdLimit: builds the table from ids to tokens. Call it once, after the last Add. Throws
  // TokenizerError if the largest id is too large for the number of tokens.
  void Finish();

  // Returns the id of `token`, or -1.
  int32_t Find(std::string_view token) const { return Find(token, HashOf(token)); }
  // Find in steps, for callers that look up many tokens and do other work in between: HashOf, PrefetchSlot,
  // PrefetchEntry, Find. Each prefetch loads memory that the next step reads.
  static uint64_t HashOf(std::string_view token);
  void PrefetchSlot(uint64_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
  void PrefetchEntry(uint64_t hash) const;
  int32_t Find(std::string_view token, uint64_t hash) const;
  // Returns the token with this id, or nullopt. The view is valid as long as the vocabulary exists.
  std::optional<std::string_view> TokenOf(int32_t id) const;
  size_t size() const { return entries_.size(); }
  // Returns 1 + the largest id.
  int32_t IdLimit() const { return id_limit_; }
  // Returns true if some token has several ids, so that Find(TokenOf(id)) may differ from id.
  bool HasRepeatedTokens() const { return has_repeated_tokens_; }
  size_t MaxTokenBytes() const { return max_token_bytes_; }

 private:
  static constexpr size_t kMaxProbes = 4096;
  struct Entry {
    uint32_t offset;
    uint32_t length;
    int32_t id;
  };
  struct Slot {
    uint32_t tag;
    uint32_t entry;  // 1 + index into entries_; 0 if free
  };

  std::string_view Text(const Entry& entry) const { return {text_.data() + entry.offset, entry.length}; }
  void Grow(size_t num_slots);
  // Returns the slot of `token`. If the token is new, returns a free slot whose tag is already set to the token's.
  size_t SlotFor(std::string_view token, int64_t id);
  void AddEntry(std::string_view token, int64_t id);

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> by_id_;  // 1 + index into entries_; 0 if the id has no token
  int32_t id_limit_ = 0;
  bool has_repeated_tokens_ = false;
  size_t max_token_bytes_ = 0;
};

// Returns the ids of the byte tokens "<0x00>".."<0xFF>", or -1 for those that the vocabulary does not have.
std::vector<int32_t> ByteFallbackIds(const Vocabulary& vocabulary);

// Returns true if the vocabulary contains U+2581 and no token contains U+2581 after a different character. Then no
// merge crosses the position between a different character and U+2581, so splitting a text there does not change the
// result.
bool NoTokenContinuesIntoMetaspace(const Vocabulary& vocabulary);

}  // namespace vllm::tokenizer
