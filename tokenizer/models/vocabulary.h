// A model's vocabulary: token text <-> id, exactly as the file writes the tokens. Filled by the loader, read-only
// afterwards and then usable from any thread.
// Invariant 1: Find gives every token one id; an id is shown as at most one token (the last of the file).
// Invariant 2: no search looks at more than kMaxProbes slots, whatever the file was crafted to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

class Vocabulary {
 public:
  static constexpr int64_t kMaxId = (1 << 24) - 1;

  // Makes room for `num_tokens` with `num_bytes` of text together.
  explicit Vocabulary(size_t num_tokens = 0, size_t num_bytes = 0);

  // A repeated token takes the later id. Throws TokenizerError when the id is out of range.
  void Add(std::string_view token, int64_t id);
  // As Add, but of a repeated token the earlier id, and what it is shown as, stays; Find gives the later id only when
  // `replace`. For vocabularies that are lists.
  void AddListed(std::string_view token, int64_t id, bool replace);
  // Builds the way from ids to tokens. Throws TokenizerError when the ids are spread too thin to be a vocabulary.
  void Finish();

  // The id of `token`, or -1.
  int32_t Find(std::string_view token) const { return Find(token, HashOf(token)); }
  // In three steps, for whoever looks up many tokens and does something else between the steps: they bring in the
  // memory that the next one reads.
  static uint64_t HashOf(std::string_view token);
  void PrefetchSlot(uint64_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
  void PrefetchEntry(uint64_t hash) const;
  int32_t Find(std::string_view token, uint64_t hash) const;
  std::optional<std::string_view> TokenOf(int32_t id) const;
  size_t size() const { return entries_.size(); }
  // 1 + largest id.
  int32_t IdLimit() const { return id_limit_; }
  // Whether some token has several ids, so that Find(TokenOf(id)) need not be id.
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
    uint32_t entry;  // 1 + index into entries_, 0 when free
  };

  std::string_view Text(const Entry& entry) const { return {text_.data() + entry.offset, entry.length}; }
  void Grow(size_t num_slots);
  // The slot of `token`, or the free one that is now its.
  size_t SlotFor(std::string_view token, int64_t id);
  void AddEntry(std::string_view token, int64_t id);

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> by_id_;  // 1 + index into entries_, 0 when the id has no token
  int32_t id_limit_ = 0;
  bool has_repeated_tokens_ = false;
  size_t max_token_bytes_ = 0;
};

// The ids of the 256 byte tokens, -1 where the vocabulary has none.
std::vector<int32_t> ByteFallbackIds(const Vocabulary& vocabulary);

// Whether no token has U+2581 after another character. Then no merge crosses the place before it, and a text falls
// apart into words there with the same result.
bool NoTokenContinuesIntoMetaspace(const Vocabulary& vocabulary);

}  // namespace vllm
