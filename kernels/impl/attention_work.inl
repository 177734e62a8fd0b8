// The data of a task of paged attention: its partitions, the positions that its queries attend to, and its scratch.
// Included inside an instruction set's namespace, before kv_elements.inl.

inline constexpr int64_t kGroupsPerPartition = kKVPartition / kTokensPerKeyGroup;
// Prefetch distance of keys, in groups, if all queries are one tile or the type is in tiles (kInTiles in
// kv_elements.inl). It covers the latency of memory.
inline constexpr int64_t kPrefetchGroups = 8;

// Addresses of the groups of sixteen tokens in one partition, and of the kPrefetchGroups groups after it.
template <typename KV>
struct PartitionGroups {
  using Element = typename KV::Element;
  static constexpr int64_t kMaxGroups = kGroupsPerPartition + kPrefetchGroups;

  const Element* keys[kMaxGroups];      // [KeyDims, 16], or [KeyDims / 2, 16, 2] in pairs; unused with latent attention
  const Element* values[kMaxGroups];    // [16, padded], or [8, padded, 2] in pairs
  const float* key_scales[kMaxGroups];  // [16], only if KV::kScaled
  const float* value_scales[kMaxGroups];
};

// Sets the addresses of groups [first_group, end_group) of the partition that begins at position `base`.
template <typename KV>
static inline void LocateGroups(const AttentionArgs& args, const AttentionTask& task, int64_t base, int64_t first_group,
                                int64_t end_group, PartitionGroups<KV>& groups) {
  using Element = typename KV::Element;
  const KVCacheLayout& layout = args.layout;
  const int64_t key_stride = layout.KeyStride();
  const int64_t value_stride = layout.ValueStride();
  const void* key_cache = layout.IsLatent() ? args.value_cache : args.key_cache;
  const char* key_base = static_cast<const char*>(key_cache) + task.kv_head * layout.KeyBytes();
  const char* value_base = static_cast<const char*>(args.value_cache) + task.kv_head * layout.ValueBytes();
  const int64_t key_elements = layout.block_size * layout.KeyDims();
  const int64_t padded = PaddedHeadDim(layout.head_dim);
  const int64_t position = base + first_group * kTokensPerKeyGroup;
  int64_t block = position / layout.block_size;
  int64_t offset = position % layout.block_size;
  for (int64_t g = first_group; g < end_group; ++g) {
    const char* k = key_base + task.block_table[block] * key_stride;
    const char* v = value_base + task.block_table[block] * value_stride;
    groups.keys[g] = reinterpret_cast<const Element*>(k) + offset * layout.KeyDims();
    groups.values[g] = reinterpret_cast<const Element*>(v) + offset * padded;
    if constexpr (KV::kScaled) {
      groups.key_scales[g] = reinterpret_cast<const float*>(k + key_elements) + offset;
      groups.value_scales[g] = reinterpret_cast<const float*>(v + layout.block_size * padded) + offset;
      if (layout.IsLatent()) groups.key_scales[g] = groups.value_scales[g];
    }
    offset += kTokensPerKeyGroup;
    if (offset == layout.block_size) {
      offset = 0;
      ++block;
    }
  }
}

// The positions of a partition that a query attends to, relative to the partition's first position.
struct SeenRange {
  int64_t first, end;

  bool empty() const { return first >= end; }
};

// The last position that the query of a row attends to.
static inline int64_t LastSeen(const AttentionArgs& args, const AttentionRow& row) {
  if (args.look_ahead == 0) return row.position;
  const int64_t ahead = row.last_position - row.position;
  return row.position + (ahead < args.look_ahead ? ahead : args.look_ahead);
}

static inline SeenRange RangeOf(const AttentionArgs& args, const AttentionRow& row, int64_t base) {
  int64_t first = args.sliding_window > 0 ? row.position + 1 - args.sliding_window - base : -base;
  int64_t end = LastSeen(args, row) + 1 - base;
  first = first > 0 ? first : 0;
  end = end < kKVPartition ? end : kKVPartition;
  return {first, end};
}

// The scratch of one task. Queries are ordered by row, then by head.
struct AttentionWork {
  int num_queries;
  int64_t padded;  // PaddedHeadDim(ValueDim)
  int64_t stride;  // elements from a token of V to the next; twice as many in pairs
  // Scaled. For each tile [KeyDims, queries of the tile]; with kInTiles, bfloat16 [num_queries, KeyDims]. With latent
  // attention [num_queries, stride].
  float* query;
  float* scores;    // [num_queries, kKVPartition]
  float* values;    // [num_queries, padded], of the current partition
  float* max;       // [num_queries], of the current partition
  float* sum;       // [num_queries], of the current partition
  float* unpacked;  // groups of K or V after conversion to float32
  // The merged results of all partitions so far.
  float* total;        // [num_queries, padded]
  float* running_max;  // [num_queries]
  float* running_sum;  // [num_queries]
};

// Splits the queries into tiles of at most `largest`, as evenly as possible. Tile i is [Begin(i), Begin(i + 1)).
struct QueryTiles {
  int num_queries, num_tiles;

  QueryTiles(int queries, int largest) : num_queries(queries), num_tiles((queries + largest - 1) / largest) {}
  int Begin(int tile) const { return num_queries * tile / num_tiles; }
};

static inline AttentionWork MakeWork(const AttentionArgs& args, const AttentionTask& task, float* scratch) {
  AttentionWork work;
  const int64_t group = args.num_queries_per_kv;
  work.num_queries = static_cast<int>(task.num_rows * group);
  work.padded = PaddedHeadDim(args.layout.ValueDim());
  work.stride = PaddedHeadDim(args.layout.head_dim);
  work.query = scratch;
  work.scores = work.query + work.num_queries * work.stride;
  work.values = work.scores + work.num_queries * kKVPartition;
  work.total = work.values + work.num_queries * work.padded;
  work.unpacked = work.total + work.num_queries * work.padded;
  work.max = work.unpacked + kKVPartition / 4 * work.stride;
  work.sum = work.max + work.num_queries;
  work.running_max = work.sum + work.num_queries;
  work.running_sum = work.running_max + work.num_queries;
  return work;
}

// Calls store(q, d, x) for dimensions [d, d + 16) of each of the queries [begin, end), scaled. x is zero beyond
// head_dim.
template <typename F>
static inline void ForScaledQueries(const AttentionArgs& args, const AttentionTask& task, int begin, int end,
                                    F&& store) {
  const int64_t group = args.num_queries_per_kv;
  const int64_t head_dim = args.layout.head_dim;
  // The softmax uses Exp2, so log2(e) is folded into the scale. With a soft cap, SoftmaxPartition multiplies by log2(e)
  // after the cap instead.
  const Vec scale = Vec::Set1(args.softcap > 0.0f ? args.scale : args.scale * kLog2E);
  for (int q = begin; q < end; ++q) {
    const float* from =
        args.query + task.rows[q / group].row * args.query_stride + (task.kv_head * group + q % group) * head_dim;
    for (int64_t d = 0; d < head_dim; d += Vec::kLanes) {
      const int lanes = head_dim - d < Vec::kLanes ? static_cast<int>(head_dim - d) : Vec::kLanes;
      store(q, d, Vec::Mul(Vec::LoadPartial(from + d, lanes), scale));
    }
  }
}

// Prefetches `bytes` bytes from `p` into L2.
static inline void PrefetchLines(const void* p, int64_t bytes) {
  constexpr int64_t kLineBytes = 64;
  for (int64_t offset = 0; offset < bytes; offset += kLineBytes)
    __builtin_prefetch(static_cast<const char*>(p) + offset, 0, 2);
}
