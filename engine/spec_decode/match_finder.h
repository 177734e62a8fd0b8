// MatchFinder: finds where the last tokens of a text occur in a history of token sequences, as LZ77 compressors do. A
// hash table maps two tokens to the latest position after them, and a chain links each position to an earlier one with
// the same hash. Several sequences may grow at the same time. A bounded history replaces its oldest tokens. Owned by
// the SuffixProposer; engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vllm {

class MatchFinder {
 public:
  // The shortest match that is found. With 1, the candidates are those of one common token, and the long matches are
  // seldom among them: edits of source files had 13.1 tokens per step, with 2 and 3 16.5. With 3, JSON rows had 2.5
  // tokens per step, with 2 2.8.
  static constexpr size_t kMinMatch = 2;
  // Find compares only this many positions, the latest ones, so its time is bounded for tokens that occur everywhere.
  // Edits of source files had 14.1 tokens per step with 8 candidates, 16.5 with 32 and 17.0 with 64.
  static constexpr size_t kMaxCandidates = 32;
  // Follows the last token of a sequence. No token has this id.
  static constexpr int32_t kNoToken = -1;

  // An index into the history, valid until the next Append.
  using Position = uint32_t;

  struct Match {
    Position next = 0;  // of the token after the match
    uint32_t length = 0;
  };

  // The end of a sequence, where Append continues. Its owner keeps it as long as the sequence may grow.
  class Sequence {
    friend class MatchFinder;
    uint32_t number_ = 0;  // from 1 in the order of the first tokens; 0 if there is none yet
    Position last_block_ = 0;
    uint32_t num_in_block_ = 0;
    int32_t last_tokens_[kMinMatch] = {kNoToken, kNoToken};
  };

  // Makes a history that is not bounded.
  MatchFinder() : MatchFinder(kMaxTokens, kMaxSequences) {}
  // Makes a history of the last `max_tokens` tokens, rounded up to a power of two and at least kBlockTokens. Find uses
  // only the `max_sequences` sequences that started last. A sequence takes up whole blocks of kBlockTokens.
  // REQUIRES: 1 <= max_tokens <= kMaxTokens, 0 <= max_sequences <= kMaxSequences.
  MatchFinder(int64_t max_tokens, int64_t max_sequences);

  static constexpr int64_t kBlockTokens = 32;
  static constexpr int64_t kMaxTokens = int64_t{1} << 31;
  static constexpr int64_t kMaxSequences = int64_t{1} << 31;

  // Allocates memory for `num_tokens` more tokens of one sequence.
  void Reserve(int64_t num_tokens);

  // Appends tokens to a sequence of this history, or starts one. Amortized O(1) per token.
  // REQUIRES: no token is kNoToken; the sequence is new or belongs to this history.
  void Append(Sequence& sequence, std::span<const int32_t> tokens);

  // Sets `matches` to the positions after the last tokens of `context`, at least kMinMatch and at most all of them,
  // where the sequence has a next token. The longest match is first, and among equal lengths the latest.
  // O(kMaxCandidates * context.size()).
  void Find(std::span<const int32_t> context, std::vector<Match>& matches) const;

  // Returns the token at a position from a Match or Next, or kNoToken at the end of the sequence.
  int32_t token(Position position) const { return position == 0 ? kNoToken : tokens_[Index(position)]; }
  // REQUIRES: token(position) is not kNoToken.
  Position Next(Position position) const {
    return (position + 1) % kBlock != 0 ? position + 1 : next_blocks_[Index(position) / kBlock];
  }

  size_t memory_bytes() const;

 private:
  // Each sequence is a linked list of blocks. A new block gets the next kBlock positions, modulo 2^32. The arrays are
  // indexed by the position modulo the capacity, so a new block replaces the oldest one once the history is full, and
  // the position alone tells whether a block has been replaced. Position 0 means none; the first block begins at
  // kBlock.
  //
  // Invariant 1: the positions of a block that have no token yet contain kNoToken.
  // Invariant 2: a position is added to a chain with its token, if kMinMatch tokens of its sequence came before it.
  // A chain may end in a replaced position. After 2^32 tokens, it may even lead to a position with another hash. Find
  // compares the tokens themselves, so no match is wrong.
  static constexpr uint32_t kBlock = kBlockTokens;

  uint32_t Index(Position position) const { return position & (capacity_ - 1); }
  bool IsPresent(Position position) const { return position != 0 && next_block_ - position <= capacity_; }
  // Returns the index in heads_ for these two tokens.
  size_t Bucket(int32_t first, int32_t second) const;
  void AddBlock(Sequence& sequence);
  // Doubles heads_.
  void GrowHeads();
  // Returns the position before this one in its sequence, or 0 if there is none or it has been replaced.
  Position Previous(Position position) const;
  uint32_t MatchLength(Position next, std::span<const int32_t> context) const;

  uint32_t capacity_;  // tokens; a power of two
  uint32_t max_sequences_;
  uint32_t num_sequences_ = 0;
  Position next_block_ = kBlock;
  std::vector<int32_t> tokens_;             // [positions]
  std::vector<Position> previous_;          // [positions]: an earlier position with the same hash
  std::vector<Position> previous_blocks_;   // [positions / kBlock]: the first position of the sequence's block before
  std::vector<Position> next_blocks_;       // [positions / kBlock]: the first position of the sequence's block after
  std::vector<uint32_t> sequence_numbers_;  // [positions / kBlock]
  std::vector<Position> heads_;             // [a power of two]: the latest position with this hash
};

}  // namespace vllm
