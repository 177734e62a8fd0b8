// Paged causal attention of a few query vectors against one KV head. Included inside an instruction set's namespace.
// Layouts and the order of sums are in kernels/attention.h.

struct KvFloat32 {
  using Element = float;
  static Vec Load(const float* p) { return Vec::Load(p); }
};
struct KvBFloat16 {
  using Element = uint16_t;
  static Vec Load(const uint16_t* p) { return Vec::LoadBFloat16(p); }
};
struct KvFloat16 {
  using Element = uint16_t;
  static Vec Load(const uint16_t* p) { return Vec::LoadFloat16(p); }
};

// Dot products of kQueries queries with the sixteen keys at `keys` [head_dim, 16], dimensions ascending.
template <typename Kv, int kQueries>
static inline void ScoreKeys(const float* const* query, const typename Kv::Element* keys, int64_t head_dim,
                             Vec* score) {
  for (int q = 0; q < kQueries; ++q) score[q] = Vec::Zero();
  for (int64_t d = 0; d < head_dim; ++d) {
    const Vec k = Kv::Load(keys + d * kTokensPerKeyGroup);
    for (int q = 0; q < kQueries; ++q) score[q] = Vec::Fma(Vec::Set1(query[q][d]), k, score[q]);
  }
}

// count <= kQueries.
template <typename Kv, int kQueries>
static inline void ScoreKeysUpTo(const float* const* query, int count, const typename Kv::Element* keys,
                                 int64_t head_dim, Vec* score) {
  if constexpr (kQueries > 0) {
    if (count < kQueries) return ScoreKeysUpTo<Kv, kQueries - 1>(query, count, keys, head_dim, score);
    ScoreKeys<Kv, kQueries>(query, keys, head_dim, score);
  }
}

// acc[q][j] += p[q][t] * V[t][j] for positions [begin, end), ascending; kChunks vectors of V a position from `column`
// on. p[q] points to the weight of position begin.
template <typename Kv, int kQueries, int kChunks>
static inline void AccumulateValues(const AttentionArgs& args, const AttentionTask& task, const float* const* p,
                                    int64_t begin, int64_t end, int64_t padded, int64_t column, float* const* acc) {
  Vec sum[kQueries][kChunks];
  for (int q = 0; q < kQueries; ++q) {
    for (int j = 0; j < kChunks; ++j) sum[q][j] = Vec::Load(acc[q] + column + j * Vec::kLanes);
  }
  const auto* cache = static_cast<const typename Kv::Element*>(args.value_cache);
  int64_t t = begin;
  while (t < end) {
    const int64_t block = task.block_table[t / args.block_size];
    const int64_t offset = t % args.block_size;
    int64_t run = args.block_size - offset;
    if (run > end - t) run = end - t;
    const auto* v = cache + ((block * args.num_kv_heads + task.kv_head) * args.block_size + offset) * padded + column;
    for (int64_t i = 0; i < run; ++i, v += padded) {
      Vec values[kChunks];
      for (int j = 0; j < kChunks; ++j) values[j] = Kv::Load(v + j * Vec::kLanes);
      for (int q = 0; q < kQueries; ++q) {
        const Vec weight = Vec::Set1(p[q][t - begin + i]);
        for (int j = 0; j < kChunks; ++j) sum[q][j] = Vec::Fma(weight, values[j], sum[q][j]);
      }
    }
    t += run;
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int j = 0; j < kChunks; ++j) sum[q][j].Store(acc[q] + column + j * Vec::kLanes);
  }
}

template <typename Kv, int kQueries>
static void AccumulateAllValues(const AttentionArgs& args, const AttentionTask& task, const float* const* p,
                                int64_t begin, int64_t end, int64_t padded, float* const* acc) {
  if (begin >= end) return;
  constexpr int kChunks = kQueries == 1 ? 2 * kValueChunks : kValueChunks;
  int64_t column = 0;
  for (; column + kChunks * Vec::kLanes <= padded; column += kChunks * Vec::kLanes) {
    AccumulateValues<Kv, kQueries, kChunks>(args, task, p, begin, end, padded, column, acc);
  }
  for (; column < padded; column += Vec::kLanes) {
    AccumulateValues<Kv, kQueries, 1>(args, task, p, begin, end, padded, column, acc);
  }
}

// A query's softmax over one partition: what it sees there, [first, end), and exp(score - max) of it.
struct PartitionRow {
  int64_t first, end;
  float max, sum;
  float* p;    // of the partition's first position
  float* acc;  // [padded]
};

// Sums up the values that `rows` see in the partition that begins at `base`, those that all see at once. Each row's
// positions ascend, whatever rows it is summed with.
template <typename Kv, int kQueries>
static void AccumulateRows(const AttentionArgs& args, const AttentionTask& task, const PartitionRow* rows, int64_t base,
                           int64_t padded) {
  int64_t first = rows[0].first, end = rows[0].end;
  for (int q = 1; q < kQueries; ++q) {
    first = rows[q].first > first ? rows[q].first : first;
    end = rows[q].end < end ? rows[q].end : end;
  }
  if (kQueries > 1 && first >= end) {
    for (int q = 0; q < kQueries; ++q) AccumulateRows<Kv, 1>(args, task, rows + q, base, padded);
    return;
  }
  const float* p[kQueries];
  float* acc[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    p[q] = rows[q].p + (first - base);
    acc[q] = rows[q].acc;
    const float* own = rows[q].p + (rows[q].first - base);
    AccumulateAllValues<Kv, 1>(args, task, &own, rows[q].first, first, padded, &acc[q]);
  }
  AccumulateAllValues<Kv, kQueries>(args, task, p, first, end, padded, acc);
  for (int q = 0; q < kQueries; ++q) {
    const float* own = rows[q].p + (end - base);
    AccumulateAllValues<Kv, 1>(args, task, &own, end, rows[q].end, padded, &acc[q]);
  }
}

// count <= kQueries.
template <typename Kv, int kQueries>
static void AccumulateRowsUpTo(const AttentionArgs& args, const AttentionTask& task, const PartitionRow* rows,
                               int count, int64_t base, int64_t padded) {
  if constexpr (kQueries > 0) {
    if (count < kQueries) return AccumulateRowsUpTo<Kv, kQueries - 1>(args, task, rows, count, base, padded);
    AccumulateRows<Kv, kQueries>(args, task, rows, base, padded);
  }
}

static inline float ExpScalar(float x) {
  float lanes[Vec::kLanes];
  Exp(Vec::Set1(x)).Store(lanes);
  return lanes[0];
}

// Turns scores [0, 16 * num_groups) into exp(score - max) in place; returns their sum. Lanes that see nothing hold -inf
// and become 0.
static inline float SoftmaxNumerators(float* scores, int64_t num_groups, float max) {
  const Vec shift = Vec::Set1(max);
  Vec sum = Vec::Zero();
  for (int64_t g = 0; g < num_groups; ++g) {
    const Vec e = Exp(Vec::Sub(Vec::Load(scores + g * Vec::kLanes), shift));
    e.Store(scores + g * Vec::kLanes);
    sum = Vec::Add(sum, e);
  }
  return Vec::ReduceAdd(sum);
}

// Adds a partition's values to the running ones, both scaled to the larger maximum.
static inline void MergePartition(const PartitionRow& row, int64_t padded, float* total, float& running_max,
                                  float& running_sum) {
  if (running_sum == 0.0f) {
    for (int64_t j = 0; j < padded; j += Vec::kLanes) Vec::Load(row.acc + j).Store(total + j);
    running_max = row.max;
    running_sum = row.sum;
    return;
  }
  const float new_max = row.max > running_max ? row.max : running_max;
  const float keep = ExpScalar(running_max - new_max);
  const float add = ExpScalar(row.max - new_max);
  const Vec keep_lanes = Vec::Set1(keep);
  const Vec add_lanes = Vec::Set1(add);
  for (int64_t j = 0; j < padded; j += Vec::kLanes) {
    Vec::Fma(Vec::Load(total + j), keep_lanes, Vec::Mul(Vec::Load(row.acc + j), add_lanes)).Store(total + j);
  }
  running_sum = running_sum * keep + row.sum * add;
  running_max = new_max;
}

template <typename Kv>
static void AttentionTyped(const AttentionArgs& args, const AttentionTask& task, float* scratch) {
  const int64_t group = args.num_queries_per_kv;
  const int64_t head_dim = args.head_dim;
  const int64_t padded = PaddedHeadDim(head_dim);
  const int num_queries = static_cast<int>(task.num_rows * group);
  const int64_t end = task.first_position + task.num_rows;  // positions that the last row sees
  int64_t start = 0;
  if (args.sliding_window > 0 && task.first_position + 1 > args.sliding_window) {
    start = task.first_position + 1 - args.sliding_window;
  }
  // Scratch: scores [q, kKvPartition], a partition's values [kMaxValueQueries, padded], then per query the running
  // values [padded], max and sum.
  float* scores = scratch;
  float* part = scores + num_queries * kKvPartition;
  float* acc = part + kMaxValueQueries * padded;
  float* running_max = acc + num_queries * padded;
  float* running_sum = running_max + num_queries;
  for (int q = 0; q < num_queries; ++q) running_sum[q] = 0.0f;

  const Vec minus_infinity = Vec::Set1(-__builtin_inff());
  const auto* cache = static_cast<const typename Kv::Element*>(args.key_cache);
  const int64_t groups_per_block = args.block_size / kTokensPerKeyGroup;

  for (int64_t base = start / kKvPartition * kKvPartition; base < end; base += kKvPartition) {
    const int64_t part_end = end < base + kKvPartition ? end : base + kKvPartition;
    const int64_t num_groups = (part_end - base + kTokensPerKeyGroup - 1) / kTokensPerKeyGroup;
    const int64_t first_group = start > base ? (start - base) / kTokensPerKeyGroup : 0;
    for (int64_t g = 0; g < num_groups; ++g) {
      const int64_t position = base + g * kTokensPerKeyGroup;
      if (g < first_group) {
        for (int q = 0; q < num_queries; ++q) minus_infinity.Store(scores + q * kKvPartition + g * kTokensPerKeyGroup);
        continue;
      }
      const int64_t block = task.block_table[position / args.block_size];
      const int64_t group_in_block = position % args.block_size / kTokensPerKeyGroup;
      const auto* keys = cache + ((block * args.num_kv_heads + task.kv_head) * groups_per_block + group_in_block) *
                                     head_dim * kTokensPerKeyGroup;
      for (int q0 = 0; q0 < num_queries; q0 += kQueryTile) {
        const int count = num_queries - q0 < kQueryTile ? num_queries - q0 : kQueryTile;
        const float* query[kQueryTile];
        for (int i = 0; i < count; ++i) {
          const int64_t row = (q0 + i) / group;
          const int64_t head = task.kv_head * group + (q0 + i) % group;
          query[i] = args.query + (task.first_row + row) * args.query_stride + head * head_dim;
        }
        Vec score[kQueryTile];
        ScoreKeysUpTo<Kv, kQueryTile>(query, count, keys, head_dim, score);
        for (int i = 0; i < count; ++i) {
          const int64_t row_position = task.first_position + (q0 + i) / group;
          // Lanes the row sees: positions in (row_position - window, row_position].
          int64_t last = row_position + 1 - position;
          if (last > kTokensPerKeyGroup) last = kTokensPerKeyGroup;
          if (last < 0) last = 0;
          int64_t first = args.sliding_window > 0 ? row_position + 1 - args.sliding_window - position : 0;
          if (first < 0) first = 0;
          if (first > last) first = last;
          Vec scaled = Vec::Mul(score[i], Vec::Set1(args.scale));
          if (args.softcap > 0.0f) scaled = SoftCap(scaled, Vec::Set1(args.softcap), Vec::Set1(1.0f / args.softcap));
          Vec::SelectRange(static_cast<int>(first), static_cast<int>(last), scaled, minus_infinity)
              .Store(scores + (q0 + i) * kKvPartition + g * kTokensPerKeyGroup);
        }
      }
    }
    for (int q = 0; q < num_queries;) {
      PartitionRow rows[kValueQueries];
      int queries[kValueQueries];
      int count = 0;
      for (; q < num_queries && count < kValueQueries; ++q) {
        PartitionRow& row = rows[count];
        const int64_t position = task.first_position + q / group;
        const int64_t window_start =
            args.sliding_window > 0 && position + 1 > args.sliding_window ? position + 1 - args.sliding_window : 0;
        row.first = window_start > base ? window_start : base;
        row.end = position + 1 < part_end ? position + 1 : part_end;
        if (row.first >= row.end) continue;
        row.p = scores + q * kKvPartition;
        row.acc = part + count * padded;
        const int64_t row_groups = (row.end - base + kTokensPerKeyGroup - 1) / kTokensPerKeyGroup;
        Vec max_lanes = Vec::Load(row.p);
        for (int64_t g = 1; g < row_groups; ++g) max_lanes = Vec::Max(Vec::Load(row.p + g * Vec::kLanes), max_lanes);
        row.max = Vec::ReduceMax(max_lanes);
        row.sum = SoftmaxNumerators(row.p, row_groups, row.max);
        for (int64_t j = 0; j < padded; j += Vec::kLanes) Vec::Zero().Store(row.acc + j);
        queries[count++] = q;
      }
      AccumulateRowsUpTo<Kv, kValueQueries>(args, task, rows, count, base, padded);
      for (int i = 0; i < count; ++i) {
        MergePartition(rows[i], padded, acc + queries[i] * padded, running_max[queries[i]], running_sum[queries[i]]);
      }
    }
  }
  for (int q = 0; q < num_queries; ++q) {
    const int64_t row = task.first_row + q / group;
    const int64_t head = task.kv_head * group + q % group;
    float* out = args.out + row * args.out_stride + head * head_dim;
    const Vec inverse = Vec::Set1(1.0f / running_sum[q]);
    for (int64_t j = 0; j < head_dim; j += Vec::kLanes) {
      const int lanes = head_dim - j < Vec::kLanes ? static_cast<int>(head_dim - j) : Vec::kLanes;
      Vec::Mul(Vec::Load(acc + q * padded + j), inverse).StorePartial(out + j, lanes);
    }
  }
}

static void Attention(const AttentionArgs& args, const AttentionTask& task, float* scratch) {
  switch (args.kv_dtype) {
    case DType::kFloat32:
      return AttentionTyped<KvFloat32>(args, task, scratch);
    case DType::kBFloat16:
      return AttentionTyped<KvBFloat16>(args, task, scratch);
    case DType::kFloat16:
      return AttentionTyped<KvFloat16>(args, task, scratch);
  }
}
