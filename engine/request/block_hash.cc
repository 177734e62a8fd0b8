#include "engine/request/block_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vllm {

static_assert(sizeof(BlockHash) == 16);

BlockHash HashBlockTokens(const BlockHash& parent, std::span<const int32_t> token_ids, std::string_view extra_keys) {
  // Hash the tokens and the extra keys separately, then combine both hashes with the parent, so that a byte of a token
  // cannot be mistaken for a byte of an extra key.
  const XXH128_hash_t tokens = XXH3_128bits(token_ids.data(), token_ids.size_bytes());
  uint64_t words[7] = {parent.lo, parent.hi, tokens.low64, tokens.high64, extra_keys.size(), 0, 0};
  if (!extra_keys.empty()) {
    const XXH128_hash_t extra = XXH3_128bits(extra_keys.data(), extra_keys.size());
    words[5] = extra.low64;
    words[6] = extra.high64;
  }
  const XXH128_hash_t hash = XXH3_128bits(words, sizeof words);
  return {hash.low64, hash.high64};
}

}  // namespace vllm
