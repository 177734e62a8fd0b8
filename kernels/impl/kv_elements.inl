// How attention reads K and V of each element type. Included inside an instruction set's namespace, before
// attention.inl. Each instruction set defines KVBFloat16 as KVBFloat16Widened, or through kv_bfloat16_dots.inl or, with
// AMX, isa/avx512_amx/kv_bfloat16_tiles.inl.
//
// Each type has:
//   Element        element type of K and V
//   kPairs         true: a step covers two dimensions of a key, or two tokens of V, which are adjacent in memory
//                  (kernels/matrix/kv_cache_layout.h)
//   kAtOnce        true: one instruction multiplies a pair. Queries and weights are rounded to Element, and each pair
//                  takes the place of one float. False: the first element is multiplied before the second.
//   kWidens        true: loaded elements are converted to float32
//   kScaled        true: elements are codes with separate scales
//   kInTiles       true: ScorePartition and SumValues, members of the type, multiply tiles of queries. Then the type
//                  needs none of the members below except Setup, StoreQuery and StoreWeights, and its StoreQuery
//                  stores in [num_queries, KeyDims].
//   Setup          an object that exists while a task runs; sets up registers if the type needs it
//   Load           loads the elements of one step, or of half a step
//   StoreQuery     stores dimensions [d, d + 16) of a query, except those from `end` on, in [KeyDims, num_queries]
//   QueryAt        returns the factor for dimension d
//   StoreWeights   stores the softmax weights of tokens [t, t + 16)
//   WeightAt       returns the factor for token t
//   MulAdd         returns sum + factor * lanes

// The part of a step to read.
enum class KVPart : uint8_t { kWhole, kFirst, kSecond };

template <KVPart kPart>
struct KVPartOf {
  static constexpr KVPart value = kPart;
  static constexpr int64_t kOffset = kPart == KVPart::kSecond ? 1 : 0;
};

struct NoSetup {
  NoSetup(int /*num_queries*/, int64_t /*key_dims*/) {}
};

// Members for types whose queries and weights stay float32.
template <typename T>
struct KVFloatFactors {
  using Element = T;
  using Setup = NoSetup;
  static constexpr bool kAtOnce = false;
  static constexpr bool kInTiles = false;

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

struct KVBFloat16Widened : KVFloatFactors<uint16_t> {
  static constexpr bool kPairs = true;
  static constexpr bool kWidens = true;
  static constexpr bool kScaled = false;
  template <KVPart kPart>
  static Vec Load(const uint16_t* p) {
    return Vec::LoadBFloat16OfPairs<KVPartOf<kPart>::kOffset>(p);
  }
};

// The number of dimensions of K, or tokens of V, per step.
template <typename KV>
inline constexpr int64_t kKVStep = KV::kPairs ? 2 : 1;

// Calls f(part) for all parts of a step, ascending.
template <typename KV, typename F>
static inline void ForParts(F&& f) {
  if constexpr (KV::kPairs && !KV::kAtOnce) {
    f(KVPartOf<KVPart::kFirst>());
    f(KVPartOf<KVPart::kSecond>());
  } else {
    f(KVPartOf<KVPart::kWhole>());
  }
}
