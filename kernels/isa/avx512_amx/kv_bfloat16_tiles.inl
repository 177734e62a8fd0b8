// bfloat16 K and V on CPUs with AMX. See impl/kv_elements.inl. Included inside a namespace with `Registers`, which is
// TileRegisters or emulates it.
//
// An instruction multiplies up to sixteen queries by sixteen keys, over up to 32 dimensions, or by sixteen columns of
// V, over a group of sixteen tokens. Groups begin at multiples of sixteen positions, so the order of the sums of a
// query does not depend on the other queries. For tokens that it does not attend to, the weights of a query are zero.
struct KVBFloat16 {
  using Element = uint16_t;
  static constexpr bool kPairs = true;
  static constexpr bool kAtOnce = true;
  static constexpr bool kWidens = false;
  static constexpr bool kScaled = false;
  static constexpr bool kInTiles = true;

  static constexpr int kTileQueries = 16;
  static constexpr int64_t kLineBytes = 64;
  static constexpr int64_t kScoreRowBytes = kKVPartition * static_cast<int64_t>(sizeof(float));
  static constexpr int64_t kGroupPairs = kTokensPerKeyGroup / 2;
  // Number of groups of keys, or of vectors of V, by which a tile of queries is multiplied at once.
  static constexpr int kAtOnceInRegisters = 4;
  // Registers. The sums have numbers 0 to 3.
  static constexpr int kQuery = 4, kKey = 5, kWeights = 6, kValue = 7;

  // Returns how many pairs of dimensions an instruction multiplies: the largest divisor of key_dims / 2 up to 16.
  static int64_t PairsPerDot(int64_t key_dims) {
    int64_t pairs = key_dims / 2 < 16 ? key_dims / 2 : 16;
    while (key_dims / 2 % pairs != 0) --pairs;
    return pairs;
  }

  // Sets the shapes of the registers. The last tile of queries is one of the largest. A smaller one also loads and
  // stores the first query of the next tile, whose results are the same in both.
  struct Setup {
    Setup(int num_queries, int64_t key_dims) {
      const QueryTiles tiles(num_queries, kTileQueries);
      const int rows = num_queries - tiles.Begin(tiles.num_tiles - 1);
      const int64_t pairs = PairsPerDot(key_dims);
      TileConfig config;
      const auto set = [&](int tile, int64_t num_rows, int64_t row_bytes) {
        config.rows[tile] = static_cast<uint8_t>(num_rows);
        config.row_bytes[tile] = static_cast<uint16_t>(row_bytes);
      };
      for (int i = 0; i < kAtOnceInRegisters; ++i) set(i, rows, kLineBytes);
      set(kQuery, rows, pairs * 4);
      set(kKey, pairs, kLineBytes);
      set(kWeights, rows, kGroupPairs * 4);
      set(kValue, kGroupPairs, kLineBytes);
      Registers::Configure(config);
    }
    ~Setup() { Registers::Release(); }
    Setup(const Setup&) = delete;
    Setup& operator=(const Setup&) = delete;
  };

  // Stores dimensions [d, d + 16) of query q in [num_queries, key_dims].
  static void StoreQuery(Vec x, int64_t d, int64_t key_dims, float* query, int q) {
    StoreEightPairs(x, query + (q * key_dims + d) / 2);
  }
  static void StoreWeights(Vec x, int64_t t, float* weights) { StoreEightPairs(x, weights + t / 2); }

  // query: of the tile. keys: of kGroups groups. scores: [queries of the tile, kKVPartition], from the first group on.
  template <int kGroups>
  static void ScoreTile(const Element* query, const Element* const* keys, int64_t dims, int64_t pairs, float* scores) {
    Unroll<kGroups>([&](auto g) { Registers::template SetZero<g>(); });
    for (int64_t d = 0; d < dims; d += 2 * pairs) {
      Registers::template Load<kQuery>(query + d, dims * 2);
      Unroll<kGroups>([&](auto g) {
        Registers::template Load<kKey>(keys[g] + d * kTokensPerKeyGroup, kLineBytes);
        Registers::template AddBFloat16Dots<g, kQuery, kKey>();
      });
    }
    Unroll<kGroups>([&](auto g) { Registers::template Store<g>(scores + g * kTokensPerKeyGroup, kScoreRowBytes); });
  }

  // Like the function ScorePartition of attention.inl.
  static void ScorePartition(const AttentionWork& work, int64_t dims, const PartitionGroups<KVBFloat16>& groups,
                             int64_t first_group, int64_t end_group, int64_t prefetch_end) {
    const QueryTiles tiles(work.num_queries, kTileQueries);
    const int64_t pairs = PairsPerDot(dims);
    const Element* const query = reinterpret_cast<const Element*>(work.query);
    for (int64_t g = first_group; g < end_group; g += kAtOnceInRegisters) {
      const int64_t end = end_group - g < kAtOnceInRegisters ? end_group : g + kAtOnceInRegisters;
      for (int64_t i = g; i < end; ++i) {
        PrefetchLines(groups.values[i], kTokensPerKeyGroup * work.padded * 2);
        if (i + kPrefetchGroups < prefetch_end) {
          PrefetchLines(groups.keys[i + kPrefetchGroups], dims * kTokensPerKeyGroup * 2);
        }
      }
      for (int tile = 0; tile < tiles.num_tiles; ++tile) {
        const int begin = tiles.Begin(tile);
        float* const scores = work.scores + begin * kKVPartition;
        if (end - g == kAtOnceInRegisters) {
          ScoreTile<kAtOnceInRegisters>(query + begin * dims, groups.keys + g, dims, pairs,
                                        scores + g * kTokensPerKeyGroup);
          continue;
        }
        for (int64_t i = g; i < end; ++i) {
          ScoreTile<1>(query + begin * dims, groups.keys + i, dims, pairs, scores + i * kTokensPerKeyGroup);
        }
      }
    }
  }

  // Computes kVectors * 16 columns of the sums of a tile of queries. weights: of the tile, [kKVPartition] floats apart
  template <int kVectors>
  static void SumColumns(const AttentionWork& work, const float* weights, const Element* const* values,
                         int64_t first_group, int64_t end_group, int64_t column, float* sums) {
    Unroll<kVectors>([&](auto j) { Registers::template SetZero<j>(); });
    for (int64_t g = first_group; g < end_group; ++g) {
      Registers::template Load<kWeights>(weights + g * kGroupPairs, kScoreRowBytes);
      Unroll<kVectors>([&](auto j) {
        Registers::template Load<kValue>(values[g] + 2 * (column + j * Vec::kLanes), work.stride * 4);
        Registers::template AddBFloat16Dots<j, kWeights, kValue>();
      });
    }
    Unroll<kVectors>([&](auto j) {
      Registers::template Store<j>(sums + column + j * Vec::kLanes, work.padded * static_cast<int64_t>(sizeof(float)));
    });
  }

  // Computes the sums of one query like SumValues, but reads zeros instead of the values that it does not attend to,
  // because the KV cache may contain anything there, even NaN. weights: of the tile to which the query belongs
  [[gnu::noinline]] static void SumAlone(const AttentionWork& work, const float* weights, int query_of_tile,
                                         const Element* const* values, SeenRange range, float* sums) {
    alignas(64) uint32_t seen[kGroupPairs][Vec::kLanes];
    alignas(64) float tile_sums[kTileQueries][Vec::kLanes];
    const int64_t end_group = (range.end + kTokensPerKeyGroup - 1) / kTokensPerKeyGroup;
    for (int64_t column = 0; column < work.padded; column += Vec::kLanes) {
      Registers::template SetZero<0>();
      for (int64_t g = range.first / kTokensPerKeyGroup; g < end_group; ++g) {
        for (int64_t pair = 0; pair < kGroupPairs; ++pair) {
          const int64_t t = g * kTokensPerKeyGroup + 2 * pair;
          const uint32_t mask = (t >= range.first && t < range.end ? 0x0000ffffu : 0u) |
                                (t + 1 >= range.first && t + 1 < range.end ? 0xffff0000u : 0u);
          const Element* const from = values[g] + 2 * (pair * work.stride + column);
          const Pairs pairs = KeepBits(LoadPairs(reinterpret_cast<const uint8_t*>(from)), mask);
          _mm512_store_si512(seen[pair], pairs.v);
        }
        Registers::template Load<kWeights>(weights + g * kGroupPairs, kScoreRowBytes);
        Registers::template Load<kValue>(seen, kLineBytes);
        Registers::template AddBFloat16Dots<0, kWeights, kValue>();
      }
      Registers::template Store<0>(tile_sums, kLineBytes);
      Vec::Load(tile_sums[query_of_tile]).Store(sums + column);
    }
  }

  static bool HasNaN(const float* sums, int64_t count) {
    __mmask16 nan = 0;
    for (int64_t i = 0; i < count; i += Vec::kLanes) {
      const __m512 x = Vec::Load(sums + i).v;
      nan |= _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    }
    return nan != 0;
  }

  // Computes the sums of all queries. Those of a query that attends to no position are undefined.
  static void SumValues(const AttentionArgs& args, const AttentionTask& task, const AttentionWork& work, int64_t base,
                        const PartitionGroups<KVBFloat16>& groups, int64_t first_group, int64_t end_group) {
    const int64_t group = args.num_queries_per_kv;
    const QueryTiles tiles(work.num_queries, kTileQueries);
    for (int q = 0; q < work.num_queries; ++q) {
      ClearWeights(RangeOf(args, task.rows[q / group], base), first_group, end_group, work.scores + q * kKVPartition);
    }
    for (int tile = 0; tile < tiles.num_tiles; ++tile) {
      const int begin = tiles.Begin(tile);
      const float* const weights = work.scores + begin * kKVPartition;
      float* const sums = work.values + begin * work.padded;
      int64_t column = 0;
      constexpr int64_t kColumns = kAtOnceInRegisters * Vec::kLanes;
      for (; column + kColumns <= work.padded; column += kColumns) {
        SumColumns<kAtOnceInRegisters>(work, weights, groups.values, first_group, end_group, column, sums);
      }
      for (; column < work.padded; column += Vec::kLanes) {
        SumColumns<1>(work, weights, groups.values, first_group, end_group, column, sums);
      }
    }
    for (int tile = 0; tile < tiles.num_tiles; ++tile) {
      const int begin = tiles.Begin(tile), end = tiles.Begin(tile + 1);
      for (int q = begin; q < end; ++q) {
        const SeenRange range = RangeOf(args, task.rows[q / group], base);
        float* const sums = work.values + q * work.padded;
        if (range.empty() || !HasNaN(sums, work.padded)) continue;
        SumAlone(work, work.scores + begin * kKVPartition, q - begin, groups.values, range, sums);
      }
    }
  }

  // Sets the weights of groups [first_group, end_group) that are outside the groups of `range` to zero.
  static void ClearWeights(SeenRange range, int64_t first_group, int64_t end_group, float* weights) {
    if (range.empty()) return;
    const int64_t first = range.first / kTokensPerKeyGroup;
    const int64_t end = (range.end + kTokensPerKeyGroup - 1) / kTokensPerKeyGroup;
    for (int64_t g = first_group; g < end_group; ++g) {
      if (g >= first && g < end) continue;
      StoreWeights(Vec::Zero(), g * kTokensPerKeyGroup, weights);
    }
  }
};
