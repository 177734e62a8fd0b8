// Attention's K and V of bfloat16 where it is multiplied as float32. See kv_elements.inl.

struct KVBFloat16 : KVFloatFactors<uint16_t> {
  static constexpr bool kPairs = true;
  static constexpr bool kWidens = true;
  static constexpr bool kScaled = false;
  template <KVPart kPart>
  static Vec Load(const uint16_t* p) {
    return Vec::LoadBFloat16OfPairs<KVPartOf<kPart>::kOffset>(p);
  }
};
