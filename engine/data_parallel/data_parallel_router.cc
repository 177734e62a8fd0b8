#include "engine/data_parallel/data_parallel_router.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace vllm {
namespace {

constexpr size_t kBits = 64;

}  // namespace

DataParallelRouter::DataParallelRouter(const Options& options)
    : options_(options),
      words_per_hash_((static_cast<size_t>(options.num_ranks) + kBits - 1) / kBits),
      outstanding_(static_cast<size_t>(options.num_ranks)),
      is_removed_(static_cast<size_t>(options.num_ranks)),
      num_cached_(static_cast<size_t>(options.num_ranks)),
      matching_(words_per_hash_) {}

const uint64_t* DataParallelRouter::Find(const BlockHash& hash) const {
  for (const Prefixes* prefixes : {&recent_, &old_}) {
    const auto found = prefixes->index.find(hash);
    if (found != prefixes->index.end()) return &prefixes->words[found->second * words_per_hash_];
  }
  return nullptr;
}

void DataParallelRouter::CountCached(std::span<const BlockHash> prefix_hashes) {
  // The ranks that have received all blocks so far; bit j of word w stands for rank w * kBits + j.
  for (size_t w = 0; w < words_per_hash_; ++w) {
    const size_t num_bits = std::min(kBits, num_cached_.size() - w * kBits);
    matching_[w] = ~uint64_t{0} >> (kBits - num_bits);
  }
  for (size_t i = 0; i <= prefix_hashes.size(); ++i) {
    const uint64_t* const ranks = i < prefix_hashes.size() ? Find(prefix_hashes[i]) : nullptr;
    for (size_t w = 0; w < words_per_hash_; ++w) {
      const uint64_t still_matching = ranks == nullptr ? 0 : matching_[w] & ranks[w];
      for (uint64_t ended = matching_[w] & ~still_matching; ended != 0; ended &= ended - 1) {
        num_cached_[w * kBits + static_cast<size_t>(std::countr_zero(ended))] = i;
      }
      matching_[w] = still_matching;
    }
    if (ranks == nullptr) return;
  }
}

void DataParallelRouter::Remember(const BlockHash& hash, int rank) {
  auto entry = recent_.index.find(hash);
  if (entry == recent_.index.end()) {
    if (recent_.index.size() >= std::max<size_t>(1, options_.max_hashes / 2)) {
      old_ = std::move(recent_);
      recent_ = Prefixes();
    }
    entry = recent_.index.emplace(hash, recent_.index.size()).first;
    recent_.words.resize(recent_.index.size() * words_per_hash_);
    if (const auto old = old_.index.find(hash); old != old_.index.end()) {
      std::copy_n(old_.words.begin() + static_cast<ptrdiff_t>(old->second * words_per_hash_), words_per_hash_,
                  recent_.words.end() - static_cast<ptrdiff_t>(words_per_hash_));
    }
  }
  const auto bit = static_cast<size_t>(rank);
  recent_.words[entry->second * words_per_hash_ + bit / kBits] |= uint64_t{1} << bit % kBits;
}

int DataParallelRouter::Route(std::span<const BlockHash> prefix_hashes, int64_t cost) {
  // A longer prefix than this cannot change the decision, and must not displace all others.
  const auto max_blocks = static_cast<size_t>(options_.max_imbalance / options_.tokens_per_hash);
  prefix_hashes = prefix_hashes.first(std::min({prefix_hashes.size(), max_blocks, options_.max_hashes / 2}));
  CountCached(prefix_hashes);
  int best = -1;
  std::pair<int64_t, int64_t> best_score;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (is_removed_[static_cast<size_t>(rank)]) continue;
    const int64_t num_cached_tokens =
        static_cast<int64_t>(num_cached_[static_cast<size_t>(rank)]) * options_.tokens_per_hash;
    // Among equal ranks, the one with fewer outstanding tokens, then the lowest.
    const std::pair score(outstanding(rank) - num_cached_tokens, outstanding(rank));
    if (best >= 0 && score >= best_score) continue;
    best = rank;
    best_score = score;
  }
  outstanding_[static_cast<size_t>(best)] += cost;
  for (const BlockHash& hash : prefix_hashes) Remember(hash, best);
  return best;
}

void DataParallelRouter::Finish(int rank, int64_t cost) { outstanding_[static_cast<size_t>(rank)] -= cost; }

void DataParallelRouter::Remove(int rank) {
  is_removed_[static_cast<size_t>(rank)] = true;
  outstanding_[static_cast<size_t>(rank)] = 0;
}

std::vector<BlockHash> PrefixHashes(std::span<const int32_t> prompt_token_ids, std::string_view extra_keys,
                                    int64_t tokens_per_hash) {
  const auto size = static_cast<size_t>(tokens_per_hash);
  std::vector<BlockHash> hashes;
  hashes.reserve(prompt_token_ids.size() / size);
  for (size_t begin = 0; begin + size <= prompt_token_ids.size(); begin += size) {
    hashes.push_back(HashBlockTokens(begin == 0 ? kNoneHash : hashes.back(), prompt_token_ids.subspan(begin, size),
                                     begin == 0 ? extra_keys : std::string_view()));
  }
  return hashes;
}

}  // namespace vllm
