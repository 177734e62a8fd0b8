#include "engine/config/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vllm {

uint64_t Hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Hash128 HashBytes128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

struct Hash64Stream::State {
  XXH3_state_t xxh3;
};

Hash64Stream::Hash64Stream() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
Hash64Stream::~Hash64Stream() = default;
void Hash64Stream::Add(std::string_view bytes) { XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size()); }
uint64_t Hash64Stream::value() const { return XXH3_64bits_digest(&state_->xxh3); }

}  // namespace vllm
