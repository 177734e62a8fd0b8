// Weighted sums of V over a range of a partition. Included by attention.inl, after attention_scores.inl.

// acc[q][j] += p[q][t] * V[t][j] for positions t in [range.first, range.end), ascending. The columns j are those of
// kChunks vectors that start at `column`. Tokens of V are `stride` elements apart, or 2 * stride in pairs.
// p: [kQueries, kKVPartition]; acc: [kQueries, padded].
template <typename KV, int kQueries, int kChunks>
static inline void AccumulateTile(const float* p, const typename KV::Element* const* values, SeenRange range,
                                  int64_t stride, int64_t padded, int64_t column, float* acc) {
  constexpr int64_t kStep = kKVStep<KV>;
  Vec sum[kQueries][kChunks];
  Unroll<kQueries>([&](auto q) {
    Unroll<kChunks>([&](auto j) { sum[q][j] = Vec::Load(acc + q * padded + column + j * Vec::kLanes); });
  });
  for (int64_t t = range.first; t < range.end;) {
    const int64_t group = t / kTokensPerKeyGroup;
    const int64_t group_end = (group + 1) * kTokensPerKeyGroup;
    const int64_t run_end = group_end < range.end ? group_end : range.end;
    const auto* v = values[group] + t % kTokensPerKeyGroup / kStep * kStep * stride + column * kStep;
    const auto add = [&](auto part) {
      constexpr KVPart kPart = decltype(part)::value;
      decltype(KV::template Load<kPart>(v)) value[kChunks];
      Unroll<kChunks>([&](auto j) { value[j] = KV::template Load<kPart>(v + j * Vec::kLanes * kStep); });
      Unroll<kQueries>([&](auto q) {
        const auto weight = KV::template WeightAt<kPart>(p + q * kKVPartition, t / kStep * kStep);
        Unroll<kChunks>([&](auto j) { sum[q][j] = KV::MulAdd(weight, value[j], sum[q][j]); });
      });
    };
    if constexpr (KV::kPairs) {
      if (t % 2 != 0) {
        add(KVPartOf<KVPart::kSecond>());
        ++t;
        v += kStep * stride;
      }
    }
    for (; t + kStep <= run_end; t += kStep, v += kStep * stride) ForParts<KV>(add);
    if constexpr (KV::kPairs) {
      if (t < run_end) {
        add(KVPartOf<KVPart::kFirst>());
        ++t;
      }
    }
  }
  Unroll<kQueries>(
      [&](auto q) { Unroll<kChunks>([&](auto j) { sum[q][j].Store(acc + q * padded + column + j * Vec::kLanes); }); });
}

template <typename KV, int kQueries>
static inline void AccumulateColumns(const float* p, const typename KV::Element* const* values, SeenRange range,
                                     int64_t stride, int64_t padded, float* acc) {
  constexpr int kChunks = kQueries == 1 ? 2 * kValueChunks : kValueChunks;
  int64_t column = 0;
  for (; column + kChunks * Vec::kLanes <= padded; column += kChunks * Vec::kLanes) {
    AccumulateTile<KV, kQueries, kChunks>(p, values, range, stride, padded, column, acc);
  }
  if constexpr (kQueries == 1) {
    for (; column + kValueChunks * Vec::kLanes <= padded; column += kValueChunks * Vec::kLanes) {
      AccumulateTile<KV, kQueries, kValueChunks>(p, values, range, stride, padded, column, acc);
    }
  }
  for (; column < padded; column += Vec::kLanes)
    AccumulateTile<KV, kQueries, 1>(p, values, range, stride, padded, column, acc);
}

// Adds, for each of kQueries queries, the weighted values of the positions that it attends to. Positions that all
// queries attend to are processed for all of them at once. The values of a query are added in ascending order of their
// positions, so the sums do not depend on the other queries. ranges: [kQueries].
template <typename KV, int kQueries>
static inline void AccumulateRanges(const float* p, const typename KV::Element* const* values, const SeenRange* ranges,
                                    int64_t stride, int64_t padded, float* acc) {
  SeenRange common = ranges[0];
  bool same = true;
  for (int q = 1; q < kQueries; ++q) {
    same = same && ranges[q].first == ranges[0].first && ranges[q].end == ranges[0].end;
    common.first = ranges[q].first > common.first ? ranges[q].first : common.first;
    common.end = ranges[q].end < common.end ? ranges[q].end : common.end;
  }
  if (same) {
    if (!common.empty()) AccumulateColumns<KV, kQueries>(p, values, common, stride, padded, acc);
    return;
  }
  // A pair is added for all queries at once only if they all attend to both of its positions.
  common.first = (common.first + kKVStep<KV> - 1) / kKVStep<KV> * kKVStep<KV>;
  common.end = common.end / kKVStep<KV> * kKVStep<KV>;
  for (int q = 0; q < kQueries; ++q) {
    const SeenRange alone{ranges[q].first, common.empty() ? ranges[q].end : common.first};
    if (!alone.empty()) AccumulateColumns<KV, 1>(p + q * kKVPartition, values, alone, stride, padded, acc + q * padded);
  }
  if (common.empty()) return;
  AccumulateColumns<KV, kQueries>(p, values, common, stride, padded, acc);
  for (int q = 0; q < kQueries; ++q) {
    const SeenRange alone{common.end, ranges[q].end};
    if (!alone.empty()) AccumulateColumns<KV, 1>(p + q * kKVPartition, values, alone, stride, padded, acc + q * padded);
  }
}

// REQUIRES: count is in [1, kQueries].
template <typename KV, int kQueries>
static void AccumulateRangesUpTo(int count, const float* p, const typename KV::Element* const* values,
                                 const SeenRange* ranges, int64_t stride, int64_t padded, float* acc) {
  if constexpr (kQueries > 0) {
    if (count < kQueries) {
      return AccumulateRangesUpTo<KV, kQueries - 1>(count, p, values, ranges, stride, padded, acc);
    }
    AccumulateRanges<KV, kQueries>(p, values, ranges, stride, padded, acc);
  }
}
