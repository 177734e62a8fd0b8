// Attention scores and their softmax over one partition. Included by attention.inl.

// Computes the dot products of kQueries queries with kGroups groups of sixteen keys, dimensions ascending.
// query: [dims, kQueries]; scores: [kQueries, kKVPartition], starting at the first group.
template <typename KV, int kQueries, int kGroups>
static inline void ScoreTile(const float* query, const typename KV::Element* const* keys, int64_t dims, float* scores) {
  const typename KV::Element* key[kGroups];
  Vec sum[kQueries][kGroups];
  Unroll<kGroups>([&](auto g) {
    key[g] = keys[g];
    Unroll<kQueries>([&](auto q) { sum[q][g] = Vec::Zero(); });
  });
  for (int64_t d = 0; d < dims; d += kKVStep<KV>) {
    ForParts<KV>([&](auto part) {
      constexpr KVPart kPart = decltype(part)::value;
      decltype(KV::template Load<kPart>(key[0])) k[kGroups];
      Unroll<kGroups>([&](auto g) { k[g] = KV::template Load<kPart>(key[g] + d * kTokensPerKeyGroup); });
      Unroll<kQueries>([&](auto q) {
        const auto x = KV::template QueryAt<kPart>(query + q, d, kQueries);
        Unroll<kGroups>([&](auto g) { sum[q][g] = KV::MulAdd(x, k[g], sum[q][g]); });
      });
    });
  }
  Unroll<kQueries>([&](auto q) {
    Unroll<kGroups>([&](auto g) { sum[q][g].Store(scores + q * kKVPartition + g * kTokensPerKeyGroup); });
  });
}

// Returns the number of groups per tile: the largest power of two, at most 8, for which the accumulators and keys fit
// in kScoreRegisters. With one group and few queries, FMA latency would not be hidden. With one query, the keys need
// not stay in registers.
constexpr int ScoreGroupsAtOnce(int num_queries) {
  int groups = 1;
  while (groups < 8 && 2 * groups * num_queries + (num_queries > 1 ? 2 * groups : 1) <= kScoreRegisters) groups *= 2;
  return groups;
}

template <typename KV, int kQueries, int kGroups = ScoreGroupsAtOnce(kQueries)>
static inline void ScoreGroups(const float* query, const typename KV::Element* const* keys, int64_t num_groups,
                               int64_t dims, float* scores) {
  int64_t g = 0;
  for (; g + kGroups <= num_groups; g += kGroups) {
    ScoreTile<KV, kQueries, kGroups>(query, keys + g, dims, scores + g * kTokensPerKeyGroup);
  }
  if constexpr (kGroups > 1) {
    if (g == num_groups) return;
    ScoreGroups<KV, kQueries, kGroups / 2>(query, keys + g, num_groups - g, dims, scores + g * kTokensPerKeyGroup);
  }
}

// REQUIRES: count is in [1, kQueries].
template <typename KV, int kQueries>
static void ScoreGroupsUpTo(int count, const float* query, const typename KV::Element* const* keys, int64_t num_groups,
                            int64_t dims, float* scores) {
  if constexpr (kQueries > 0) {
    if (count < kQueries) {
      return ScoreGroupsUpTo<KV, kQueries - 1>(count, query, keys, num_groups, dims, scores);
    }
    ScoreGroups<KV, kQueries>(query, keys, num_groups, dims, scores);
  }
}

static inline int LaneAt(int64_t position, int64_t group) {
  const int64_t lane = position - group * kTokensPerKeyGroup;
  return static_cast<int>(lane < 0 ? 0 : lane > kTokensPerKeyGroup ? kTokensPerKeyGroup : lane);
}

// The position bias of a query's scores over one partition.
struct PositionBias {
  const float* middle;  // the element of distance 0; null: there is no bias
  int64_t span;
  int64_t offset;  // distance of the partition's first position

  // Returns the biases of positions [first, first + Vec::kLanes).
  Vec At(int64_t first) const {
    const int64_t begin = first + offset, end = begin + Vec::kLanes - 1;
    if (begin >= -span && end <= span) return Vec::Load(middle + begin);
    if (end <= -span) return Vec::Set1(middle[-span]);
    if (begin >= span) return Vec::Set1(middle[span]);
    float lanes[Vec::kLanes];
    for (int i = 0; i < Vec::kLanes; ++i) {
      const int64_t distance = begin + i;
      lanes[i] = middle[distance < -span ? -span : distance > span ? span : distance];
    }
    return Vec::Load(lanes);
  }
};

static inline PositionBias PositionBiasOf(const AttentionArgs& args, const AttentionRow& row, int64_t head,
                                          int64_t base) {
  const int64_t span = args.position_bias_span;
  if (args.position_bias == nullptr) return {nullptr, 0, 0};
  return {args.position_bias + head * (2 * span + 1) + span, span, base - row.position};
}

// Replaces a query's dot products with the softmax weights 2^(score - max), and sets the maximum and the sum. Scores
// include the factor log2(e). With int8, the stored weights are also multiplied by the scales of V. For dot products of
// pairs, the weights are rounded to bfloat16, and the pair of positions t and t + 1 is stored at index t / 2.
template <typename KV>
static inline void SoftmaxPartition(const AttentionArgs& args, const PartitionGroups<KV>& groups, SeenRange range,
                                    const PositionBias& bias, float* scores, float& max, float& sum) {
  const int64_t first_group = range.first / kTokensPerKeyGroup;
  const int64_t end_group = (range.end + kTokensPerKeyGroup - 1) / kTokensPerKeyGroup;
  const Vec minus_infinity = Vec::Set1(-__builtin_inff());
  const bool changes = KV::kScaled || args.softcap > 0.0f || bias.middle != nullptr;
  Vec max_lanes = minus_infinity;
  for (int64_t g = first_group; g < end_group; ++g) {
    Vec score = Vec::Load(scores + g * kTokensPerKeyGroup);
    if constexpr (KV::kScaled) score = Vec::Mul(score, Vec::Load(groups.key_scales[g]));
    if (args.softcap > 0.0f) {
      score = SoftCap(score, Vec::Set1(args.softcap), Vec::Set1(1.0f / args.softcap));
      score = Vec::Mul(score, Vec::Set1(kLog2E));
    }
    if (bias.middle != nullptr) score = Vec::Fma(bias.At(g * kTokensPerKeyGroup), Vec::Set1(kLog2E), score);
    const bool edge = g == first_group || g == end_group - 1;
    if (edge) {
      score = Vec::SelectRange(LaneAt(range.first, g), LaneAt(range.end, g), score, minus_infinity);
    }
    if (edge || changes) score.Store(scores + g * kTokensPerKeyGroup);
    max_lanes = Vec::Max(score, max_lanes);
  }
  max = Vec::ReduceMax(max_lanes);
  const Vec shift = Vec::Set1(max);
  Vec sum_lanes = Vec::Zero();
  for (int64_t g = first_group; g < end_group; ++g) {
    Vec e = Exp2(Vec::Sub(Vec::Load(scores + g * kTokensPerKeyGroup), shift));
    sum_lanes = Vec::Add(sum_lanes, e);
    if constexpr (KV::kScaled) e = Vec::Mul(e, Vec::Load(groups.value_scales[g]));
    KV::StoreWeights(e, g * kTokensPerKeyGroup, scores);
  }
  sum = Vec::ReduceAdd(sum_lanes);
}
