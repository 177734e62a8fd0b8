// BlockHash: the hash of a full block of tokens, used for lookups in the prefix cache. A block's hash includes its
// parent's hash, so equal hashes almost surely mean equal prefixes. Lookups compare the tokens as well. The hash has no
// key and no seed, so a prefix has the same hash in every process. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace vllm {

struct BlockHash {
  uint64_t lo = 0;
  uint64_t hi = 0;
  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

// The parent of a request's first block (vLLM's NONE_HASH).
inline constexpr BlockHash kNoneHash{0x6d6c6c76, 0x656e6f6e};

// extra_keys: data other than tokens that identifies the block's contents; see Request::extra_keys.
using BlockHashFunction = BlockHash (*)(const BlockHash& parent, std::span<const int32_t> token_ids,
                                        std::string_view extra_keys);

// Returns the 128-bit XXH3 hash of the parent, the tokens and the extra keys.
BlockHash HashBlockTokens(const BlockHash& parent, std::span<const int32_t> token_ids, std::string_view extra_keys);

}  // namespace vllm
