// How attention reads K and V of one type. Included inside an instruction set's namespace, before its own KvBFloat16
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
enum class KvPart : uint8_t { kWhole, kFirst, kSecond };

template <KvPart kPart>
struct KvPartOf {
  static constexpr KvPart value = kPart;
  static constexpr int64_t kOffset = kPart == KvPart::kSecond ? 1 : 0;
};

// Queries and weights of float32.
template <typename T>
struct KvFloatFactors {
  using Element = T;
  static constexpr bool kAtOnce = false;

  static void StoreQuery(Vec x, int64_t d, int64_t end, float* query, int64_t num_queries) {
    float lanes[Vec::kLanes];
    x.Store(lanes);
    for (int64_t i = d; i < end; ++i) query[i * num_queries] = lanes[i - d];
  }
  template <KvPart kPart>
  static Vec QueryAt(const float* query, int64_t d, int64_t num_queries) {
    return Vec::Set1(query[(d + KvPartOf<kPart>::kOffset) * num_queries]);
  }
  static void StoreWeights(Vec x, int64_t t, float* weights) { x.Store(weights + t); }
  template <KvPart kPart>
  static Vec WeightAt(const float* weights, int64_t t) {
    return Vec::Set1(weights[t + KvPartOf<kPart>::kOffset]);
  }
  static Vec MulAdd(Vec factor, Vec lanes, Vec sum) { return Vec::Fma(factor, lanes, sum); }
};

struct KvFloat32 : KvFloatFactors<float> {
  static constexpr bool kPairs = false;
  static constexpr bool kWidens = false;
  static constexpr bool kScaled = false;
  template <KvPart>
  static Vec Load(const float* p) {
    return Vec::Load(p);
  }
};

struct KvFloat16 : KvFloatFactors<uint16_t> {
  static constexpr bool kPairs = false;
  static constexpr bool kWidens = true;
  static constexpr bool kScaled = false;
  template <KvPart>
  static Vec Load(const uint16_t* p) {
    return Vec::LoadFloat16(p);
  }
};

struct KvInt8 : KvFloatFactors<int8_t> {
  static constexpr bool kPairs = false;
  static constexpr bool kWidens = true;
  static constexpr bool kScaled = true;
  template <KvPart>
  static Vec Load(const int8_t* p) {
    return Vec::LoadInt8(p);
  }
};

// What one step of K or V takes: dimensions, or tokens.
template <typename Kv>
inline constexpr int64_t kKvStep = Kv::kPairs ? 2 : 1;

// f(part) for all of a step, ascending.
template <typename Kv, typename F>
static inline void ForParts(F&& f) {
  if constexpr (Kv::kPairs && !Kv::kAtOnce) {
    f(KvPartOf<KvPart::kFirst>());
    f(KvPartOf<KvPart::kSecond>());
  } else {
    f(KvPartOf<KvPart::kWhole>());
  }
}
