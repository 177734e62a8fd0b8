// Paged causal attention of a few query vectors over one KV head. Included inside an instruction set's namespace.
// kernels/attention.h specifies the reduction order.

#include "kernels/impl/attention_latent.inl"
#include "kernels/impl/attention_scores.inl"
#include "kernels/impl/attention_values.inl"

// Stores the scaled queries in work.query.
template <typename KV>
static inline void PackQueries(const AttentionArgs& args, const AttentionTask& task, const AttentionWork& work) {
  if (args.layout.IsLatent()) {
    ForScaledQueries(args, task, 0, work.num_queries,
                     [&](int q, int64_t d, Vec x) { x.Store(work.query + q * work.stride + d); });
    return;
  }
  const int64_t dims = args.layout.KeyDims();
  if constexpr (KV::kInTiles) {
    ForScaledQueries(args, task, 0, work.num_queries,
                     [&](int q, int64_t d, Vec x) { KV::StoreQuery(x, d, dims, work.query, q); });
  } else {
    const QueryTiles tiles(work.num_queries, kQueryTile);
    for (int tile = 0; tile < tiles.num_tiles; ++tile) {
      const int begin = tiles.Begin(tile), end = tiles.Begin(tile + 1);
      ForScaledQueries(args, task, begin, end, [&](int q, int64_t d, Vec x) {
        KV::StoreQuery(x, d, dims < d + Vec::kLanes ? dims : d + Vec::kLanes, work.query + begin * dims + (q - begin),
                       end - begin);
      });
    }
  }
}

// Converts elements [rows, width] of K or V to float32. REQUIRES: `rows` is even if elements are stored in pairs.
template <typename KV>
static inline void Unpack(const typename KV::Element* from, int64_t rows, int64_t width, float* to) {
  for (int64_t row = 0; row < rows; row += kKVStep<KV>, from += kKVStep<KV> * width) {
    ForParts<KV>([&](auto part) {
      for (int64_t i = 0; i < width; i += Vec::kLanes, to += Vec::kLanes) {
        KV::template Load<decltype(part)::value>(from + kKVStep<KV> * i).Store(to);
      }
    });
  }
}

// Computes the dot products of all queries with the keys of groups [first_group, end_group). Prefetches the values of
// these groups and the keys that follow. With a single tile of queries, also prefetches keys of the next partition, up
// to group prefetch_end.
template <typename KV>
static void ScorePartition(const AttentionWork& work, int64_t dims, const PartitionGroups<KV>& groups,
                           int64_t first_group, int64_t end_group, int64_t prefetch_end) {
  const QueryTiles tiles(work.num_queries, kQueryTile);
  // V usually comes from memory or from another core's cache, so prefetch it while K is processed.
  const int64_t value_bytes = kTokensPerKeyGroup * work.padded * static_cast<int64_t>(sizeof(typename KV::Element));
  const int64_t key_bytes = dims * kTokensPerKeyGroup * static_cast<int64_t>(sizeof(typename KV::Element));
  if (tiles.num_tiles == 1) {
    constexpr int64_t kGroupsAtOnce = 8;
    for (int64_t g = first_group; g < end_group; g += kGroupsAtOnce) {
      const int64_t num_groups = end_group - g < kGroupsAtOnce ? end_group - g : kGroupsAtOnce;
      for (int64_t i = g; i < g + num_groups; ++i) {
        PrefetchLines(groups.values[i], value_bytes);
        if (i + kPrefetchGroups < prefetch_end) PrefetchLines(groups.keys[i + kPrefetchGroups], key_bytes);
      }
      ScoreGroupsUpTo<KV, kQueryTile>(work.num_queries, work.query, groups.keys + g, num_groups, dims,
                                      work.scores + g * kTokensPerKeyGroup);
    }
    return;
  }
  using Read = std::conditional_t<KV::kWidens, KVFloat32, KV>;
  // Two groups stay in L1 while all tiles pass over them. If elements have to be converted, each group is converted
  // once.
  constexpr int64_t kGroupsAtOnce = 2;
  const int64_t group_floats = dims * kTokensPerKeyGroup;
  for (int64_t g = first_group; g < end_group; g += kGroupsAtOnce) {
    const int64_t num_groups = end_group - g < kGroupsAtOnce ? end_group - g : kGroupsAtOnce;
    const typename Read::Element* keys[kGroupsAtOnce];
    for (int64_t i = 0; i < num_groups; ++i) {
      if constexpr (KV::kWidens) {
        Unpack<KV>(groups.keys[g + i], dims, kTokensPerKeyGroup, work.unpacked + i * group_floats);
        keys[i] = work.unpacked + i * group_floats;
      } else {
        keys[i] = groups.keys[g + i];
      }
    }
    for (int64_t i = g; i < g + num_groups; ++i) {
      PrefetchLines(groups.values[i], value_bytes);
      if (i + kGroupsAtOnce < end_group) PrefetchLines(groups.keys[i + kGroupsAtOnce], key_bytes);
    }
    for (int tile = 0; tile < tiles.num_tiles; ++tile) {
      const int begin = tiles.Begin(tile);
      ScoreGroupsUpTo<Read, kQueryTile>(tiles.Begin(tile + 1) - begin, work.query + begin * dims, keys, num_groups,
                                        dims, work.scores + begin * kKVPartition + g * kTokensPerKeyGroup);
    }
  }
}

// Like ScorePartition, for latent attention. Prefetches groups up to prefetch_end.
template <typename KV>
static void ScoreLatentPartition(const AttentionWork& work, const PartitionGroups<KV>& groups, int64_t first_group,
                                 int64_t end_group, int64_t prefetch_end) {
  // Instructions that multiply pairs of V's tokens cannot multiply dimensions.
  using Read = std::conditional_t<KV::kAtOnce, KVBFloat16Widened, KV>;
  const QueryTiles tiles(work.num_queries, kLatentQueries);
  const int64_t group_bytes = kTokensPerKeyGroup * work.stride * static_cast<int64_t>(sizeof(typename KV::Element));
  for (int64_t g = first_group; g < end_group; ++g) {
    if (g + 1 < prefetch_end) PrefetchLines(groups.values[g + 1], group_bytes);
    const float* vectors;
    if constexpr (Read::kWidens) {
      Unpack<Read>(groups.values[g], kTokensPerKeyGroup, work.stride, work.unpacked);
      vectors = work.unpacked;
    } else {
      vectors = groups.values[g];
    }
    for (int tile = 0; tile < tiles.num_tiles; ++tile) {
      const int begin = tiles.Begin(tile);
      ScoreLatentGroupUpTo<kLatentQueries>(tiles.Begin(tile + 1) - begin, work.query + begin * work.stride, vectors,
                                           work.stride, work.scores + begin * kKVPartition + g * kTokensPerKeyGroup);
    }
  }
}

// Adds the weighted values of groups [first_group, end_group) to the sums of the queries that attend to them.
template <typename KV>
static inline void AccumulateGroups(const AttentionArgs& args, const AttentionTask& task, const AttentionWork& work,
                                    int64_t base, const typename KV::Element* const* values, int64_t first_group,
                                    int64_t end_group) {
  const int64_t group = args.num_queries_per_kv;
  const QueryTiles tiles(work.num_queries, kValueQueries);
  for (int tile = 0; tile < tiles.num_tiles; ++tile) {
    const int begin = tiles.Begin(tile);
    const int count = tiles.Begin(tile + 1) - begin;
    SeenRange ranges[kValueQueries];
    for (int q = 0; q < count; ++q) {
      ranges[q] = RangeOf(args, task.rows[(begin + q) / group], base);
      if (ranges[q].first < first_group * kTokensPerKeyGroup) ranges[q].first = first_group * kTokensPerKeyGroup;
      if (ranges[q].end > end_group * kTokensPerKeyGroup) ranges[q].end = end_group * kTokensPerKeyGroup;
    }
    AccumulateRangesUpTo<KV, kValueQueries>(count, work.scores + begin * kKVPartition, values, ranges, work.stride,
                                            work.padded, work.values + begin * work.padded);
  }
}

template <typename KV>
static void SumValues(const AttentionArgs& args, const AttentionTask& task, const AttentionWork& work, int64_t base,
                      const PartitionGroups<KV>& groups, int64_t first_group, int64_t end_group) {
  const int64_t num_tiles = QueryTiles(work.num_queries, kValueQueries).num_tiles;
  // With several tiles, V of this many groups stays in L1 while all tiles pass over it.
  const int64_t groups_at_once = num_tiles == 1       ? kGroupsPerPartition
                                 : work.padded <= 64  ? 4
                                 : work.padded <= 128 ? 2
                                                      : 1;
  for (int64_t g = first_group; g < end_group; g += groups_at_once) {
    const int64_t end = g + groups_at_once < end_group ? g + groups_at_once : end_group;
    // For up to two tiles, converting in registers for each tile is cheaper than converting once through memory.
    if (!KV::kWidens || num_tiles <= 2) {
      AccumulateGroups<KV>(args, task, work, base, groups.values, g, end);
      continue;
    }
    if constexpr (KV::kWidens) {
      const float* values[kGroupsPerPartition];
      const int64_t group_floats = kTokensPerKeyGroup * work.stride;
      for (int64_t i = g; i < end; ++i) {
        float* to = work.unpacked + (i - g) * group_floats;
        Unpack<KV>(groups.values[i], kTokensPerKeyGroup, work.stride, to);
        values[i] = to;
      }
      AccumulateGroups<KVFloat32>(args, task, work, base, values, g, end);
    }
  }
}

// Computes work.values, max and sum of the partition that begins at position `base`. sum is 0 for queries that attend
// to none of its positions. May also prefetch the first keys of the next partition, up to `last`, the last position
// that the task reads.
template <typename KV>
static void ComputePartition(const AttentionArgs& args, const AttentionTask& task, const AttentionWork& work,
                             int64_t base, int64_t last) {
  const int64_t group = args.num_queries_per_kv;
  SeenRange all{kKVPartition, 0};
  for (int64_t row = 0; row < task.num_rows; ++row) {
    const SeenRange range = RangeOf(args, task.rows[row], base);
    if (range.empty()) continue;
    all.first = range.first < all.first ? range.first : all.first;
    all.end = range.end > all.end ? range.end : all.end;
  }
  const int64_t first_group = all.first / kTokensPerKeyGroup;
  const int64_t end_group = (all.end + kTokensPerKeyGroup - 1) / kTokensPerKeyGroup;
  PartitionGroups<KV> groups;
  int64_t prefetch_end = end_group;
  if (end_group == kGroupsPerPartition) {
    const int64_t last_group_end = (last - base) / kTokensPerKeyGroup + 1;
    prefetch_end = last_group_end < end_group + kPrefetchGroups ? last_group_end : end_group + kPrefetchGroups;
  }
  LocateGroups<KV>(args, task, base, first_group, prefetch_end, groups);
  const int64_t dims = args.layout.KeyDims();
  if (args.layout.IsLatent()) {
    ScoreLatentPartition<KV>(work, groups, first_group, end_group, prefetch_end);
  } else if constexpr (KV::kInTiles) {
    KV::ScorePartition(work, dims, groups, first_group, end_group, prefetch_end);
  } else {
    ScorePartition<KV>(work, dims, groups, first_group, end_group, prefetch_end);
  }
  for (int q = 0; q < work.num_queries; ++q) {
    const SeenRange range = RangeOf(args, task.rows[q / group], base);
    work.sum[q] = 0.0f;
    if (range.empty()) continue;
    const PositionBias bias = PositionBiasOf(args, task.rows[q / group], task.kv_head * group + q % group, base);
    SoftmaxPartition<KV>(args, groups, range, bias, work.scores + q * kKVPartition, work.max[q], work.sum[q]);
  }
  if constexpr (KV::kInTiles) {
    KV::SumValues(args, task, work, base, groups, first_group, end_group);
  } else {
    for (int64_t i = 0; i < work.num_queries * work.padded; i += Vec::kLanes) Vec::Zero().Store(work.values + i);
    SumValues<KV>(args, task, work, base, groups, first_group, end_group);
  }
}

static inline float Exp2Scalar(float x) {
  float lanes[Vec::kLanes];
  Exp2(Vec::Set1(x)).Store(lanes);
  return lanes[0];
}

// Merges a partition's values [padded] into a query's running totals, both scaled to the larger maximum.
static inline void MergePartition(const AttentionWork& work, int q, const float* values, float max, float sum) {
  if (sum == 0.0f) return;
  float* total = work.total + q * work.padded;
  float& running_max = work.running_max[q];
  float& running_sum = work.running_sum[q];
  if (running_sum == 0.0f) {
    for (int64_t j = 0; j < work.padded; j += Vec::kLanes) Vec::Load(values + j).Store(total + j);
    running_max = max;
    running_sum = sum;
    return;
  }
  // Only the side with the smaller maximum needs rescaling.
  const bool grows = max > running_max;
  const float smaller = Exp2Scalar(grows ? running_max - max : max - running_max);
  const float keep = grows ? smaller : 1.0f;
  const float add = grows ? 1.0f : smaller;
  const Vec keep_lanes = Vec::Set1(keep);
  const Vec add_lanes = Vec::Set1(add);
  for (int64_t j = 0; j < work.padded; j += Vec::kLanes) {
    Vec::Fma(Vec::Load(total + j), keep_lanes, Vec::Mul(Vec::Load(values + j), add_lanes)).Store(total + j);
  }
  running_sum = running_sum * keep + sum * add;
  if (grows) running_max = max;
}

// Returns the factor that turns the weighted sum of a query's values into its output. The running maximum includes the
// factor log2(e). The larger of the maximum and the sink becomes the reference, so that no term overflows.
static inline float OutputFactor(const AttentionArgs& args, int64_t head, float running_max, float running_sum) {
  if (args.sinks == nullptr) return 1.0f / running_sum;
  const float sink = args.sinks[head] * kLog2E;
  if (!(sink > running_max)) return 1.0f / (running_sum + Exp2Scalar(sink - running_max));
  const float keep = Exp2Scalar(running_max - sink);
  return keep / (running_sum * keep + 1.0f);
}

static inline void WriteOutput(const AttentionArgs& args, const AttentionTask& task, const AttentionWork& work) {
  const int64_t group = args.num_queries_per_kv;
  const int64_t value_dim = args.layout.ValueDim();
  for (int q = 0; q < work.num_queries; ++q) {
    const int64_t head = task.kv_head * group + q % group;
    float* out = args.out + task.rows[q / group].row * args.out_stride + head * value_dim;
    const Vec inverse = Vec::Set1(OutputFactor(args, head, work.running_max[q], work.running_sum[q]));
    for (int64_t j = 0; j < value_dim; j += Vec::kLanes) {
      const int lanes = value_dim - j < Vec::kLanes ? static_cast<int>(value_dim - j) : Vec::kLanes;
      Vec::Mul(Vec::Load(work.total + q * work.padded + j), inverse).StorePartial(out + j, lanes);
    }
  }
}

// Returns the address in args.partials of a query's result over one partition: values [padded], max, sum.
static inline float* PartialOf(const AttentionArgs& args, int64_t slot, int64_t kv_head, int64_t query) {
  const int64_t index = (slot * args.layout.num_kv_heads + kv_head) * args.num_queries_per_kv + query;
  return args.partials + index * PartialFloats(args.layout.ValueDim());
}

template <typename KV>
static void AttentionTyped(const AttentionArgs& args, const AttentionTask& task, float* scratch) {
  const AttentionWork work = MakeWork(args, task, scratch);
  [[maybe_unused]] const typename KV::Setup setup(work.num_queries, args.layout.KeyDims());
  PackQueries<KV>(args, task, work);
  for (int q = 0; q < work.num_queries; ++q) work.running_sum[q] = 0.0f;
  int64_t first = task.rows[0].position, last = LastSeen(args, task.rows[0]);
  for (int64_t row = 1; row < task.num_rows; ++row) {
    const int64_t last_seen = LastSeen(args, task.rows[row]);
    first = task.rows[row].position < first ? task.rows[row].position : first;
    last = last_seen > last ? last_seen : last;
  }
  int64_t partition = 0;
  if (args.sliding_window > 0 && first + 1 > args.sliding_window) {
    partition = (first + 1 - args.sliding_window) / kKVPartition;
  }
  for (; partition * kKVPartition <= last; ++partition) {
    if (task.partial_slots != nullptr && task.partial_slots[partition] >= 0) {
      for (int q = 0; q < work.num_queries; ++q) {
        const float* partial = PartialOf(args, task.partial_slots[partition], task.kv_head, q);
        MergePartition(work, q, partial, partial[work.padded], partial[work.padded + 1]);
      }
      continue;
    }
    ComputePartition<KV>(args, task, work, partition * kKVPartition, last);
    for (int q = 0; q < work.num_queries; ++q) {
      MergePartition(work, q, work.values + q * work.padded, work.max[q], work.sum[q]);
    }
  }
  WriteOutput(args, task, work);
}

template <typename KV>
static void PartialTyped(const AttentionArgs& args, const AttentionTask& task, int64_t partition, int64_t first_slot,
                         float* scratch) {
  const AttentionWork work = MakeWork(args, task, scratch);
  [[maybe_unused]] const typename KV::Setup setup(work.num_queries, args.layout.KeyDims());
  PackQueries<KV>(args, task, work);
  ComputePartition<KV>(args, task, work, partition * kKVPartition, (partition + 1) * kKVPartition - 1);
  for (int q = 0; q < work.num_queries; ++q) {
    float* partial =
        PartialOf(args, first_slot + q / args.num_queries_per_kv, task.kv_head, q % args.num_queries_per_kv);
    for (int64_t j = 0; j < work.padded; j += Vec::kLanes) {
      Vec::Load(work.values + q * work.padded + j).Store(partial + j);
    }
    partial[work.padded] = work.max[q];
    partial[work.padded + 1] = work.sum[q];
  }
}

static void Attention(const AttentionArgs& args, const AttentionTask& task, float* scratch) {
  switch (args.layout.dtype) {
    case KVDType::kFloat32:
      return AttentionTyped<KVFloat32>(args, task, scratch);
    case KVDType::kBFloat16:
      return AttentionTyped<KVBFloat16>(args, task, scratch);
    case KVDType::kFloat16:
      return AttentionTyped<KVFloat16>(args, task, scratch);
    case KVDType::kInt8:
      return AttentionTyped<KVInt8>(args, task, scratch);
  }
}

static void AttentionPartial(const AttentionArgs& args, const AttentionTask& task, int64_t partition,
                             int64_t first_slot, float* scratch) {
  switch (args.layout.dtype) {
    case KVDType::kFloat32:
      return PartialTyped<KVFloat32>(args, task, partition, first_slot, scratch);
    case KVDType::kBFloat16:
      return PartialTyped<KVBFloat16>(args, task, partition, first_slot, scratch);
    case KVDType::kFloat16:
      return PartialTyped<KVFloat16>(args, task, partition, first_slot, scratch);
    case KVDType::kInt8:
      return PartialTyped<KVInt8>(args, task, partition, first_slot, scratch);
  }
}
