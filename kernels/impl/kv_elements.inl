// How attention reads K and V of one type. Included inside an instruction set's namespace, before its own KVBFloat16
// (kv_bfloat16_widened.inl or kv_bfloat16_dots.inl) and attention.inl.
//
// Each has
//   Element        what K and V consist of
//   kPairs         two dimensions of a key and two tokens of V lie side by side (kernels/matrix/kv_cache_layout.h): a
//   step
//                  takes both
//   kAtOnce        it does so by one instruction, for which queries and weights are rounded to Element, in pairs, each
//                  pair in the place of a float; else by two, the first before the second
//   kWidens        what is loaded is converted to float32
//   kScaled        elements are codes, whose scales are kept aside
//   Load           elements of one step, or of half of one
//   StoreQuery     puts dimensions [d, d + 16) of a query among [head_dim, num_queries], those below `end`
//   QueryAt        the factor for dimension d
//   StoreWeights   puts the weights of tokens [t, t + 16)
//   WeightAt       the factor for token t
//   MulAdd         sum + factor * lanes

// What is read of a step.
enum class KVPart : uint8_t { kWhole, kFirst, kSecond };

template <KVPart kPart>
struct KVPartOf {
  static constexpr KVPart value = kPart;
  static constexpr int64_t kOffset = kPart == KVPart::kSecond ? 1 : 0;
};

// Queries and weights of float32.
template <typename T>
struct KVFloatFactors {
  using Element = T;
  static constexpr bool kAtOnce = false;

  static void StoreQuery(Vec x, int64_t d, int64_t end, float* query, int64_t num_queries) {
    float lanes[Vec::kLanes];
    x.Store(lanes);
    for (int64_t i = d; i < end; ++i) query[i * num_queries] = lanes[i - d];
  }
  template <KVPart kPart>
  static Vec QueryAt(const float* query, int64_t d, int64_t num_queries) {
    return Vec::Set1(query[(d + KVPartOf<kPart>::kOffset) * num_queries]);
  }
  static void StoreWeights(Vec x, int64_t t, float* weights) { x.Store(weights + t); }
  template <KVPart kPart>
  static Vec WeightAt(const float* weights, int64_t t) {
    return Vec::Set1(weights[t + KVPartOf<kPart>::kOffset]);
  }
  static Vec MulAdd(Vec factor, Vec lanes, Vec sum) { return Vec::Fma(factor, lanes, sum); }
};

struct KVFloat32 : KVFloatFactors<float> {
  static constexpr bool kPairs = false;
  static constexpr bool kWidens = false;
  static constexpr bool kScaled = false;
  template <KVPart>
  static Vec Load(const float* p) {
    return Vec::Load(p);
  }
};

struct KVFloat16 : KVFloatFactors<uint16_t> {
  static constexpr bool kPairs = false;
  static constexpr bool kWidens = true;
  static constexpr bool kScaled = false;
  template <KVPart>
  static Vec Load(const uint16_t* p) {
    return Vec::LoadFloat16(p);
  }
};

struct KVInt8 : KVFloatFactors<int8_t> {
  static constexpr bool kPairs = false;
  static constexpr bool kWidens = true;
  static constexpr bool kScaled = true;
  template <KVPart>
  static Vec Load(const int8_t* p) {
    return Vec::LoadInt8(p);
  }
};

// What one step of K or V takes: dimensions, or tokens.
template <typename KV>
inline constexpr int64_t kKVStep = KV::kPairs ? 2 : 1;

// f(part) for all of a step, ascending.
template <typename KV, typename F>
static inline void ForParts(F&& f) {
  if constexpr (KV::kPairs && !KV::kAtOnce) {
    f(KVPartOf<KVPart::kFirst>());
    f(KVPartOf<KVPart::kSecond>());
  } else {
    f(KVPartOf<KVPart::kWhole>());
  }
}
