#include "engine/layers/attention/attention.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

// In a contiguous block, K and V of each tensor begin at cache lines.
int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

int64_t CachedLayers::BlockBytes(int64_t block_size, kernels::KVDType dtype) const {
  const KVCacheGroups groups = MakeKVCacheGroups(attention);
  int64_t bytes = groups.BlockBytes(block_size, dtype);
  if (recurrent.empty()) return bytes;
  if (!groups.is_packed()) {
    bytes = 0;
    for (const KVCacheSpec& tensor : groups.tensors) {
      const kernels::KVCacheLayout layout = tensor.Layout(block_size, dtype);
      bytes += Aligned(layout.KeyStride()) + Aligned(layout.ValueStride());
    }
  }
  return std::max(bytes, RecurrentStateLayout::MinBlockBytes(recurrent));
}

KVCache::KVCache(const CachedLayers& layers, int64_t num_blocks, int64_t block_size, kernels::KVDType dtype)
    : groups_(MakeKVCacheGroups(layers.attention)), block_size_(block_size), num_blocks_(num_blocks), dtype_(dtype) {
  if (groups_.is_packed() || !layers.recurrent.empty()) {
    block_stride_ = layers.BlockBytes(block_size, dtype);
    buffers_.emplace_back(static_cast<size_t>(num_blocks * block_stride_));
  }
  std::byte* next = block_stride_ > 0 ? buffers_[0].as<std::byte>() : nullptr;
  if (!layers.recurrent.empty()) state_layout_ = RecurrentStateLayout(layers.recurrent, block_stride_);
  if (groups_.is_packed()) {
    for (size_t i = 0; i < layers.attention.size(); ++i) {
      kernels::KVCacheLayout layout = layers.attention[i].Layout(block_size, dtype);
      std::byte* const key = next + groups_.PackedOffset(i, block_size, dtype);
      std::byte* const value = key + layout.KeyStride();
      layout.block_stride = block_stride_;
      places_.push_back({key, value, layout});
    }
    return;
  }
  std::vector<Place> tensors;
  for (const KVCacheSpec& tensor : groups_.tensors) {
    kernels::KVCacheLayout layout = tensor.Layout(block_size, dtype);
    const int64_t key_bytes = layout.KeyStride(), value_bytes = layout.ValueStride();
    if (block_stride_ > 0) {
      layout.block_stride = block_stride_;
      tensors.push_back({next, next + Aligned(key_bytes), layout});
      next += Aligned(key_bytes) + Aligned(value_bytes);
      continue;
    }
    std::byte* key = nullptr;
    if (key_bytes > 0) key = buffers_.emplace_back(static_cast<size_t>(num_blocks * key_bytes)).as<std::byte>();
    std::byte* const value = buffers_.emplace_back(static_cast<size_t>(num_blocks * value_bytes)).as<std::byte>();
    tensors.push_back({key, value, layout});
  }
  for (const KVLayerPlace& layer : groups_.layers) places_.push_back(tensors[layer.tensor]);
}

template <typename F>
void KVCache::ForEachPart(F&& f) const {
  for (const kernels::AlignedBuffer& buffer : buffers_) {
    f(buffer.as<std::byte>(), static_cast<int64_t>(buffer.size_bytes()) / num_blocks_);
  }
}

void KVCache::CopyBlock(int32_t from, int32_t to) {
  ForEachPart([&](std::byte* part, int64_t bytes) {
    std::memcpy(part + to * bytes, part + from * bytes, static_cast<size_t>(bytes));
  });
}

void KVCache::CopyBlockOut(int64_t block, std::span<std::byte> payload) const {
  std::byte* to = payload.data();
  ForEachPart([&](const std::byte* part, int64_t bytes) {
    std::memcpy(to, part + block * bytes, static_cast<size_t>(bytes));
    to += bytes;
  });
}

void KVCache::CopyBlockIn(int64_t block, std::span<const std::byte> payload) {
  const std::byte* from = payload.data();
  ForEachPart([&](std::byte* part, int64_t bytes) {
    std::memcpy(part + block * bytes, from, static_cast<size_t>(bytes));
    from += bytes;
  });
}

Attention::Attention(const StepContext& step, size_t layer, const KVCacheSpec& spec, int64_t num_heads, float scale,
                     float softcap, std::vector<float> sinks, std::vector<float> position_bias)
    : step_(step),
      layer_(layer),
      spec_(spec),
      num_heads_(num_heads),
      scale_(scale),
      softcap_(softcap),
      sinks_(std::move(sinks)),
      position_bias_(std::move(position_bias)) {
  kernels::AttentionArgs args;
  args.layout.head_dim = spec.head_dim;
  args.layout.value_dim = spec.value_dim;
  args.num_queries_per_kv = num_heads / spec.num_kv_heads;
  const auto floats = static_cast<size_t>(kernels::AttentionScratchFloats(args));
  step.workspace->attention.scratch.resize(static_cast<size_t>(step.threads->num_threads()));
  for (std::vector<float>& scratch : step.workspace->attention.scratch)
    scratch.resize(std::max(scratch.size(), floats));
}

void Attention::Forward(const AttentionMetadata& metadata, KVCache& cache, const float* query, const float* key,
                        const float* value, int64_t qkv_stride, float* out, int64_t out_stride) {
  kernels::AttentionArgs args;
  args.query = query;
  args.query_stride = qkv_stride;
  args.out = out;
  args.out_stride = out_stride;
  void* const keys = cache.key(layer_);
  void* const values = cache.value(layer_);
  args.key_cache = keys;
  args.value_cache = values;
  args.layout = cache.Layout(layer_);
  args.num_queries_per_kv = num_heads_ / spec_.num_kv_heads;
  args.scale = scale_;
  args.softcap = softcap_;
  args.sliding_window = spec_.sliding_window;
  args.look_ahead = spec_.look_ahead;
  if (!sinks_.empty()) args.sinks = sinks_.data();
  if (!position_bias_.empty()) {
    args.position_bias = position_bias_.data();
    args.position_bias_span = static_cast<int64_t>(position_bias_.size()) / num_heads_ / 2;
  }
  args.partials = metadata.partials.as<float>();

  const AttentionGroup& group = metadata.groups[cache.group(layer_)];
  const int64_t num_tokens = key == nullptr ? 0 : static_cast<int64_t>(group.slot_mapping.size());
  // A head's keys of adjacent tokens are in the same cache lines, so they are written one after another.
  constexpr int64_t kTokensAtATime = kernels::kTokensPerKeyGroup;
  const int64_t num_groups = (num_tokens + kTokensAtATime - 1) / kTokensAtATime;
  ForEachRow(step_, num_groups, kTokensAtATime * 2 * spec_.num_kv_heads * spec_.head_dim, [&](int64_t i) {
    const int64_t begin = i * kTokensAtATime, end = std::min(num_tokens, begin + kTokensAtATime);
    for (int64_t head = 0; head < spec_.num_kv_heads; ++head) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t offset = row * qkv_stride + head * spec_.head_dim;
        kernels::WriteKV(args.layout, keys, values, group.slot_mapping[static_cast<size_t>(row)], head, key + offset,
                         value == nullptr ? nullptr : value + offset);
      }
    }
  });

  const int64_t work = MakeTasks(metadata, group);
  // Below this many multiply-adds, waking another thread costs more than it saves.
  constexpr int64_t kMinWork = 1 << 18;
  const bool use_threads = work >= kMinWork;
  Run(args, step_.workspace->attention.tasks, use_threads);
  Run(args, step_.workspace->attention.merging, use_threads);
}

int64_t Attention::MakeTasks(const AttentionMetadata& metadata, const AttentionGroup& group) const {
  AttentionWorkspace& workspace = step_.workspace->attention;
  const int64_t num_heads = spec_.num_kv_heads;
  workspace.tasks.clear();
  workspace.merging.clear();
  int64_t work = 0;
  const int64_t max_rows = std::max<int64_t>(1, kernels::kMaxQueriesPerTask / (num_heads_ / num_heads));
  // With several threads, make enough tasks for all threads to finish at about the same time.
  int64_t rows_per_task = max_rows;
  const int64_t num_threads = step_.threads->num_threads();
  if (num_threads > 1) {
    const auto num_tokens = static_cast<int64_t>(metadata.rows.size());
    rows_per_task = std::clamp<int64_t>(num_tokens * num_heads / (4 * num_threads), 1, max_rows);
  }
  for (const AttentionSequence& sequence : group.sequences) {
    int64_t num_seen = sequence.first_position + sequence.num_rows;
    if (spec_.sliding_window > 0) num_seen = std::min(num_seen, spec_.sliding_window + sequence.num_rows);
    work += sequence.num_rows * num_seen * num_heads_ * spec_.head_dim;
  }
  // Tasks of one head are adjacent, so that K and V of a prompt, or of a prefix that several sequences share, stay in
  // the CPU cache from one task to the next. The last rows of a sequence attend to the most positions, so their tasks
  // come first. A long task at the end would keep the other threads waiting.
  for (int64_t head = 0; head < num_heads; ++head) {
    for (size_t i = 0; i < group.sequences.size(); ++i) {
      const AttentionSequence& sequence = group.sequences[i];
      const int32_t* slots = group.plan.slots(i);
      std::vector<AttentionStepTask>& tasks = slots == nullptr ? workspace.tasks : workspace.merging;
      for (int64_t end = sequence.num_rows; end > 0; end -= std::min(end, rows_per_task)) {
        const int64_t begin = std::max<int64_t>(0, end - rows_per_task);
        const kernels::AttentionRow* rows = metadata.rows.data() + sequence.first_row + begin;
        tasks.push_back({{rows, end - begin, sequence.block_table, head, slots}, -1, 0});
      }
    }
  }
  for (const PlannedPartition& planned : group.plan.partitions()) {
    for (int64_t begin = 0; begin < planned.num_rows; begin += max_rows) {
      const int64_t slot = planned.first_slot + begin;
      const int64_t num_rows = std::min(max_rows, planned.num_rows - begin);
      for (int64_t head = 0; head < num_heads; ++head) {
        const kernels::AttentionTask task{group.plan.row_of_slot(slot), num_rows, planned.block_table, head, nullptr};
        workspace.tasks.push_back({task, planned.partition, slot});
      }
    }
  }
  return work;
}

void Attention::Run(const kernels::AttentionArgs& args, const std::vector<AttentionStepTask>& tasks,
                    bool use_threads) const {
  auto run = [&](int64_t index, int thread) {
    const AttentionStepTask& task = tasks[static_cast<size_t>(index)];
    float* scratch = step_.workspace->attention.scratch[static_cast<size_t>(thread)].data();
    if (task.partition < 0) return step_.kernels->attention->forward(args, task.task, scratch);
    step_.kernels->attention->forward_partial(args, task.task, task.partition, task.first_slot, scratch);
  };
  const auto num_tasks = static_cast<int64_t>(tasks.size());
  if (use_threads) return step_.threads->ParallelFor(num_tasks, run);
  for (int64_t index = 0; index < num_tasks; ++index) run(index, 0);
}

}  // namespace vllm
