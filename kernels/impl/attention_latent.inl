// Scores of latent attention, where a token has one vector that is both its key and its value. The vectors are stored
// by token, so a score is a sum over the lanes of its products. Included by attention.inl.

inline constexpr int kLatentTokens = kScoreRegisters >= 16 ? 4 : 2;
inline constexpr int kLatentQueries = kScoreRegisters / kLatentTokens - 1;
static_assert(kTokensPerKeyGroup % kLatentTokens == 0);

// Computes the dot products of kQueries queries with kLatentTokens vectors. The lanes of a sum take every sixteenth
// dimension, ascending, and are added last.
// query: [kQueries, width]; vectors: [kLatentTokens, width]; scores: [kQueries, kKVPartition].
template <int kQueries>
static inline void ScoreLatentTile(const float* query, const float* vectors, int64_t width, float* scores) {
  Vec sum[kQueries][kLatentTokens];
  Unroll<kQueries>([&](auto q) { Unroll<kLatentTokens>([&](auto t) { sum[q][t] = Vec::Zero(); }); });
  for (int64_t d = 0; d < width; d += Vec::kLanes) {
    Vec x[kLatentTokens];
    Unroll<kLatentTokens>([&](auto t) { x[t] = Vec::Load(vectors + t * width + d); });
    Unroll<kQueries>([&](auto q) {
      const Vec factor = Vec::Load(query + q * width + d);
      Unroll<kLatentTokens>([&](auto t) { sum[q][t] = Vec::Fma(factor, x[t], sum[q][t]); });
    });
  }
  Unroll<kQueries>([&](auto q) {
    Unroll<kLatentTokens>([&](auto t) { scores[q * kKVPartition + t] = Vec::ReduceAdd(sum[q][t]); });
  });
}

// The same for the sixteen vectors of a group. REQUIRES: count is in [1, kQueries].
template <int kQueries>
static void ScoreLatentGroupUpTo(int count, const float* query, const float* vectors, int64_t width, float* scores) {
  if constexpr (kQueries > 0) {
    if (count < kQueries) return ScoreLatentGroupUpTo<kQueries - 1>(count, query, vectors, width, scores);
    for (int64_t t = 0; t < kTokensPerKeyGroup; t += kLatentTokens) {
      ScoreLatentTile<kQueries>(query, vectors + t * width, width, scores + t);
    }
  }
}
