// bfloat16 K and V if pairs of them are multiplied at once, see kv_elements.inl. Included inside an instruction set's
// namespace, which defines Pairs, and with PairFactors how pairs of queries and weights are stored and loaded.

struct KVBFloat16 : PairFactors {
  using Element = uint16_t;
  struct Setup {
    Setup(int /*num_queries*/, int64_t /*key_dims*/) {}
    FlushDenormals flush;
  };
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
    if constexpr (kPart == KVPart::kFirst) return FirstOnly(pairs);
    if constexpr (kPart == KVPart::kSecond) return SecondOnly(pairs);
    return pairs;
  }
  template <KVPart>
  static Pairs QueryAt(const float* query, int64_t d, int64_t num_queries) {
    return QueryPair(query, d, num_queries);
  }
  template <KVPart>
  static Pairs WeightAt(const float* weights, int64_t t) {
    return WeightPair(weights, t);
  }
  static Vec MulAdd(Pairs factor, Pairs lanes, Vec sum) { return AddPairs(sum, lanes, factor); }
};
