#include "engine/request/block_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "engine/request/engine_core_request.h"

namespace vllm {

static_assert(sizeof(BlockHash) == 16);

BlockHash HashBlockTokens(const BlockHash& parent, std::span<const int32_t> token_ids, std::string_view extra_keys) {
  // Tokens and extra keys are hashed apart and then together with the parent, so that no byte of one can pass for a
  // byte of the other.
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

std::string ExtraKeys(const EngineCoreRequest& request, bool first_block) {
  const std::string_view salt = first_block ? std::string_view(request.cache_salt) : std::string_view();
  if (request.lora_name.empty() && salt.empty()) return {};
  // The name's length comes first: ("ab", "c") and ("a", "bc") must not be one key.
  std::string keys = std::to_string(request.lora_name.size());
  keys += ':';
  keys += request.lora_name;
  keys += salt;
  return keys;
}

}  // namespace vllm
