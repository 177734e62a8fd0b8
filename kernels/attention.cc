#include "kernels/attention.h"

#include <algorithm>
#include <cstring>

namespace vllm {

int64_t AttentionScratchFloats(const AttentionArgs& args) {
  const int64_t queries = std::max(kMaxQueriesPerTask, args.num_queries_per_kv);
  const int64_t padded = PaddedHeadDim(args.head_dim);
  return queries * (kKvPartition + padded + 2) + kMaxValueQueries * padded;
}

namespace {

template <typename T, typename Convert>
void WriteKvAs(const AttentionArgs& args, T* keys, T* values, int64_t slot, int64_t kv_head, const float* key,
               const float* value, Convert convert) {
  const int64_t block = slot / args.block_size;
  const int64_t offset = slot % args.block_size;
  const int64_t head_dim = args.head_dim;
  const int64_t padded = PaddedHeadDim(head_dim);
  const int64_t head = block * args.num_kv_heads + kv_head;
  T* k = keys +
         (head * (args.block_size / kTokensPerKeyGroup) + offset / kTokensPerKeyGroup) * head_dim * kTokensPerKeyGroup +
         offset % kTokensPerKeyGroup;
  for (int64_t d = 0; d < head_dim; ++d) k[d * kTokensPerKeyGroup] = convert(key[d]);
  T* v = values + (head * args.block_size + offset) * padded;
  for (int64_t d = 0; d < head_dim; ++d) v[d] = convert(value[d]);
}

}  // namespace

void WriteKv(const AttentionArgs& args, void* key_cache, void* value_cache, int64_t slot, int64_t kv_head,
             const float* key, const float* value) {
  if (args.kv_dtype == DType::kFloat32) {
    WriteKvAs(args, static_cast<float*>(key_cache), static_cast<float*>(value_cache), slot, kv_head, key, value,
              [](float x) { return x; });
  } else if (args.kv_dtype == DType::kBFloat16) {
    WriteKvAs(args, static_cast<uint16_t*>(key_cache), static_cast<uint16_t*>(value_cache), slot, kv_head, key, value,
              FloatToBFloat16);
  } else {
    WriteKvAs(args, static_cast<uint16_t*>(key_cache), static_cast<uint16_t*>(value_cache), slot, kv_head, key, value,
              FloatToFloat16);
  }
}

}  // namespace vllm
