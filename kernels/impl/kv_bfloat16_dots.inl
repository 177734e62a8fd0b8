// bfloat16 K and V on CPUs with a dot product of bfloat16 pairs. See kv_elements.inl.

struct KVBFloat16 {
  using Element = uint16_t;
  using Setup = NoSetup;
  static constexpr bool kPairs = true;
  static constexpr bool kAtOnce = true;
  static constexpr bool kWidens = false;
  static constexpr bool kScaled = false;
  static constexpr bool kInTiles = false;

  // Loads both elements of a pair. For half a pair, sets the other element to zero, because the KV cache may contain
  // anything there, even NaN.
  template <KVPart kPart>
  static Pairs Load(const uint16_t* p) {
    const Pairs pairs = LoadPairs(reinterpret_cast<const uint8_t*>(p));
    if constexpr (kPart == KVPart::kFirst) return KeepBits(pairs, 0x0000ffffu);
    if constexpr (kPart == KVPart::kSecond) return KeepBits(pairs, 0xffff0000u);
    return pairs;
  }
  static void StoreQuery(Vec x, int64_t d, int64_t end, float* query, int64_t num_queries) {
    float pairs[Vec::kLanes / 2];
    StoreEightPairs(x, pairs);
    for (int64_t i = d; i < end; i += 2) query[i / 2 * num_queries] = pairs[(i - d) / 2];
  }
  template <KVPart>
  static Pairs QueryAt(const float* query, int64_t d, int64_t num_queries) {
    return BroadcastPairAt(query + d / 2 * num_queries);
  }
  static void StoreWeights(Vec x, int64_t t, float* weights) { StoreEightPairs(x, weights + t / 2); }
  template <KVPart>
  static Pairs WeightAt(const float* weights, int64_t t) {
    return BroadcastPairAt(weights + t / 2);
  }
  static Vec MulAdd(Pairs factor, Pairs lanes, Vec sum) { return AddPairs(sum, lanes, factor); }
};
