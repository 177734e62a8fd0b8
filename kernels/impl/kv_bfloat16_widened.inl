// Attention's K and V of bfloat16 where it is multiplied as float32. See kv_elements.inl.

struct KvBFloat16 : KvFloatFactors<uint16_t> {
  static constexpr bool kPairs = true;
  static constexpr bool kWidens = true;
  static constexpr bool kScaled = false;
  template <KvPart kPart>
  static Vec Load(const uint16_t* p) {
    return Vec::LoadBFloat16OfPairs<KvPartOf<kPart>::kOffset>(p);
  }
};
