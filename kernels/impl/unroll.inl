// Loops that the compiler must unroll. Included inside an instruction set's namespace.

template <int kValue>
struct Int {
  static constexpr int value = kValue;
  constexpr operator int() const { return kValue; }
};

// Calls f(Int<0>()), f(Int<1>()), ..., f(Int<kCount - 1>()).
template <int kCount, typename F>
static inline void Unroll(F&& f) {
  if constexpr (kCount > 0) {
    Unroll<kCount - 1>(f);
    f(Int<kCount - 1>());
  }
}
