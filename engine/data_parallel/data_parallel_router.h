// DataParallelRouter: decides which data-parallel engine runs a request. A pure policy without threads and engines, so
// the ranks may be engines of this process or other processes. The same calls give the same ranks. Not thread-safe;
// owned by the front end that sends the requests.
//
// Every request has a cost in tokens, and a rank's outstanding tokens are the costs of its unfinished requests. The
// router remembers which rank has received which prefix, and chooses the rank with the fewest outstanding tokens after
// subtracting the tokens of the prompt that the rank probably has in its prefix cache. So requests with the same prefix
// go to the same rank until waiting there would cost more than computing the prefix again elsewhere.
//
// Invariants:
// 1. When a request is routed, its rank has at most max_imbalance more outstanding tokens than any other rank.
// 2. At most max_hashes prefixes are remembered; the least recently used ones are forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/request/block_hash.h"

namespace vllm {

class DataParallelRouter {
 public:
  struct Options {
    int num_ranks = 1;
    int64_t tokens_per_hash = 16;    // the size of a block
    int64_t max_imbalance = 32'768;  // in tokens; 0: ignore prefixes
    size_t max_hashes = 262'144;
  };

  // REQUIRES: num_ranks >= 1, tokens_per_hash >= 1, max_imbalance >= 0.
  explicit DataParallelRouter(const Options& options);

  // Chooses the rank of a request and adds `cost` to its outstanding tokens. `prefix_hashes` has the hash of each full
  // block of the prompt (see PrefixHashes). O(number of hashes + number of ranks). REQUIRES: cost >= 0.
  int Route(std::span<const BlockHash> prefix_hashes, int64_t cost);
  // Ends a request that Route has sent to `rank` with this cost.
  void Finish(int rank, int64_t cost);
  // Route no longer chooses `rank`, whose requests have ended. REQUIRES: another rank is left.
  void Remove(int rank);

  int num_ranks() const { return static_cast<int>(outstanding_.size()); }
  int64_t outstanding(int rank) const { return outstanding_[static_cast<size_t>(rank)]; }
  size_t num_hashes() const { return recent_.index.size() + old_.index.size(); }

 private:
  struct HashOfBlockHash {
    size_t operator()(const BlockHash& hash) const { return static_cast<size_t>(hash.lo); }
  };
  // Prefixes and the ranks that have received them. Entry i has the bits words[i * words_per_hash_, ...), one per rank.
  struct Prefixes {
    std::unordered_map<BlockHash, size_t, HashOfBlockHash> index;
    std::vector<uint64_t> words;
  };

  // Returns the bits of the ranks that have received the prefix; null if there are none.
  const uint64_t* Find(const BlockHash& hash) const;
  // Sets num_cached_[rank] to the number of leading blocks that each rank has received.
  void CountCached(std::span<const BlockHash> prefix_hashes);
  void Remember(const BlockHash& hash, int rank);

  const Options options_;
  const size_t words_per_hash_;
  std::vector<int64_t> outstanding_;  // [num_ranks]
  std::vector<bool> is_removed_;      // [num_ranks]
  // Prefixes used since old_ was replaced, and those used before. Once recent_ has max_hashes / 2 entries, it replaces
  // old_.
  Prefixes recent_, old_;
  std::vector<size_t> num_cached_;  // [num_ranks], a buffer of Route
  std::vector<uint64_t> matching_;  // [words_per_hash_], a buffer of CountCached
};

// Returns the hash of each full block of the prompt. Equal prefixes have equal hashes in every process.
std::vector<BlockHash> PrefixHashes(std::span<const int32_t> prompt_token_ids, std::string_view extra_keys,
                                    int64_t tokens_per_hash);

}  // namespace vllm
