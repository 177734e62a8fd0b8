#include "kernels/attention.h"

#include <algorithm>

namespace vllm::kernels {

// The sum of the sizes of the parts into which MakeWork in impl/attention.inl divides the scratch of the largest task.
int64_t AttentionScratchFloats(const AttentionArgs& args) {
  const int64_t queries = std::max(kMaxQueriesPerTask, args.num_queries_per_kv);
  const int64_t padded = PaddedHeadDim(args.layout.head_dim);
  return queries * (kKVPartition + 3 * padded + 4) + kKVPartition / 4 * padded;
}

}  // namespace vllm::kernels
