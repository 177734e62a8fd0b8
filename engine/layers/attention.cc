#include "engine/layers/attention.h"

#include <algorithm>

#include "engine/layers/for_each_row.h"

namespace vllm {

KvCache::KvCache(const std::vector<KvLayerSpec>& layers, int64_t num_blocks, int64_t block_size, DType dtype)
    : groups_(MakeKvCacheGroups(layers)), block_size_(block_size), num_blocks_(num_blocks), dtype_(dtype) {
  const auto element = static_cast<int64_t>(SizeOf(dtype));
  for (const KvLayerSpec& tensor : groups_.tensors) {
    const int64_t tokens = num_blocks * block_size * tensor.num_kv_heads;
    keys_.emplace_back(static_cast<size_t>(tokens * tensor.head_dim * element));
    values_.emplace_back(static_cast<size_t>(tokens * PaddedHeadDim(tensor.head_dim) * element));
  }
}

Attention::Attention(const RankContext& context, size_t layer, const KvLayerSpec& spec, int64_t num_heads, float scale,
                     float softcap)
    : context_(context), layer_(layer), spec_(spec), num_heads_(num_heads), scale_(scale), softcap_(softcap) {
  AttentionArgs args;
  args.head_dim = spec.head_dim;
  args.num_queries_per_kv = num_heads / spec.num_kv_heads;
  scratch_.resize(static_cast<size_t>(context.threads->num_threads()));
  for (std::vector<float>& scratch : scratch_) scratch.resize(static_cast<size_t>(AttentionScratchFloats(args)));
}

void Attention::Forward(const AttentionMetadata& metadata, KvCache& cache, const float* query, const float* key,
                        const float* value, int64_t qkv_stride, float* out, int64_t out_stride) {
  AttentionArgs args;
  args.query = query;
  args.query_stride = qkv_stride;
  args.out = out;
  args.out_stride = out_stride;
  args.key_cache = cache.key(layer_);
  args.value_cache = cache.value(layer_);
  args.kv_dtype = cache.dtype();
  args.block_size = cache.block_size();
  args.num_kv_heads = spec_.num_kv_heads;
  args.num_queries_per_kv = num_heads_ / spec_.num_kv_heads;
  args.head_dim = spec_.head_dim;
  args.scale = scale_;
  args.softcap = softcap_;
  args.sliding_window = spec_.sliding_window;

  const AttentionGroup& group = metadata.groups[cache.group(layer_)];
  const auto num_tokens = static_cast<int64_t>(group.slot_mapping.size());
  ForEachRow(context_, num_tokens, 2 * spec_.num_kv_heads * spec_.head_dim, [&](int64_t row) {
    for (int64_t head = 0; head < spec_.num_kv_heads; ++head) {
      const int64_t offset = row * qkv_stride + head * spec_.head_dim;
      WriteKv(args, cache.key(layer_), cache.value(layer_), group.slot_mapping[static_cast<size_t>(row)], head,
              key + offset, value + offset);
    }
  });

  tasks_.clear();
  int64_t work = 0;  // multiply-adds of all scores
  const int64_t rows_per_task = std::max<int64_t>(1, kMaxQueriesPerTask / args.num_queries_per_kv);
  for (const AttentionSequence& sequence : group.sequences) {
    int64_t num_seen = sequence.first_position + sequence.num_rows;
    if (spec_.sliding_window > 0) num_seen = std::min(num_seen, spec_.sliding_window + sequence.num_rows);
    work += sequence.num_rows * num_seen * num_heads_ * spec_.head_dim;
    for (int64_t row = 0; row < sequence.num_rows; row += rows_per_task) {
      for (int64_t head = 0; head < spec_.num_kv_heads; ++head) {
        tasks_.push_back({sequence.first_row + row, std::min(rows_per_task, sequence.num_rows - row),
                          sequence.first_position + row, sequence.block_table, head});
      }
    }
  }
  auto run = [&](int64_t task, int thread) {
    context_.kernels->attention(args, tasks_[static_cast<size_t>(task)], scratch_[static_cast<size_t>(thread)].data());
  };
  const auto num_tasks = static_cast<int64_t>(tasks_.size());
  // Less than this costs less than waking another thread for it.
  constexpr int64_t kMinWork = 1 << 18;
  if (work < kMinWork) {
    for (int64_t task = 0; task < num_tasks; ++task) run(task, 0);
  } else {
    context_.threads->ParallelFor(num_tasks, run);
  }
}

}  // namespace vllm
