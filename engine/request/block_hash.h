// BlockHash: the name under which a full block of tokens is looked up in the prefix cache. It chains: a block's hash
// covers its parent's, so that equal hashes mean (almost surely) equal prefixes; whoever looks one up compares the
// tokens as well. The function has no key and no seed: the same prefix has the same hash in every process.
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

// extra_keys: what besides tokens decides the block's contents, as Request::extra_keys gives it.
using BlockHashFunction = BlockHash (*)(const BlockHash& parent, std::span<const int32_t> token_ids,
                                        std::string_view extra_keys);

// 128 bits of XXH3 over parent, tokens and extra keys.
BlockHash HashBlockTokens(const BlockHash& parent, std::span<const int32_t> token_ids, std::string_view extra_keys);

}  // namespace vllm
