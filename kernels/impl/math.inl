// Vector exp and tanh for softmax, soft caps and activations. Included inside an instruction set's namespace.

// exp(min(x, 88.02)), which is below 2^127. Cody-Waite reduction to |r| <= ln2 / 2, then a degree-7 polynomial (Cephes
// expf). The operand order of Min and Max keeps NaN.
static inline Vec Exp(Vec x) {
  const Vec clamped = Vec::Max(Vec::Set1(-104.0f), Vec::Min(Vec::Set1(88.02f), x));
  const Vec n = Vec::Round(Vec::Mul(clamped, Vec::Set1(1.44269504088896341f)));
  Vec r = Vec::Fma(n, Vec::Set1(-0.693359375f), clamped);
  r = Vec::Fma(n, Vec::Set1(2.12194440e-4f), r);
  Vec p = Vec::Set1(1.9875691500e-4f);
  p = Vec::Fma(p, r, Vec::Set1(1.3981999507e-3f));
  p = Vec::Fma(p, r, Vec::Set1(8.3334519073e-3f));
  p = Vec::Fma(p, r, Vec::Set1(4.1665795894e-2f));
  p = Vec::Fma(p, r, Vec::Set1(1.6666665459e-1f));
  p = Vec::Fma(p, r, Vec::Set1(5.0000001201e-1f));
  p = Vec::Fma(p, Vec::Mul(r, r), Vec::Add(r, Vec::Set1(1.0f)));
  return Vec::ScalePow2(p, n);
}

inline constexpr float kLog2E = 1.44269504088896341f;

// 2^x for x <= 0, within 2 ulp. 2^-inf is 0, and NaN stays NaN. The polynomial approximates 2^r on |r| <= 1/2 with
// a relative error below 2e-8, which includes the rounding of its coefficients to float32.
static inline Vec Exp2(Vec x) {
  const Vec clamped = Vec::Max(Vec::Set1(-152.0f), x);
  const Vec n = Vec::Round(clamped);
  const Vec r = Vec::Sub(clamped, n);
  Vec p = Vec::Set1(1.5353362e-4f);
  p = Vec::Fma(p, r, Vec::Set1(1.3398874e-3f));
  p = Vec::Fma(p, r, Vec::Set1(9.618437e-3f));
  p = Vec::Fma(p, r, Vec::Set1(5.5503324e-2f));
  p = Vec::Fma(p, r, Vec::Set1(2.4022648e-1f));
  p = Vec::Fma(p, r, Vec::Set1(6.931472e-1f));
  p = Vec::Fma(p, r, Vec::Set1(1.0f));
  return Vec::ScalePow2(p, n);
}

// exp(x) - 1 for |x| up to about 40, without cancellation near zero. Uses the reduction and the polynomial of Exp,
// without its constant term 1.
static inline Vec ExpMinusOne(Vec x) {
  const Vec n = Vec::Round(Vec::Mul(x, Vec::Set1(1.44269504088896341f)));
  Vec r = Vec::Fma(n, Vec::Set1(-0.693359375f), x);
  r = Vec::Fma(n, Vec::Set1(2.12194440e-4f), r);
  Vec p = Vec::Set1(1.9875691500e-4f);
  p = Vec::Fma(p, r, Vec::Set1(1.3981999507e-3f));
  p = Vec::Fma(p, r, Vec::Set1(8.3334519073e-3f));
  p = Vec::Fma(p, r, Vec::Set1(4.1665795894e-2f));
  p = Vec::Fma(p, r, Vec::Set1(1.6666665459e-1f));
  p = Vec::Fma(p, r, Vec::Set1(5.0000001201e-1f));
  p = Vec::Fma(p, Vec::Mul(r, r), r);
  const Vec scale = Vec::Pow2(n);
  return Vec::Fma(p, scale, Vec::Sub(scale, Vec::Set1(1.0f)));
}

// Above 9.1, tanh(x) rounds to 1 in float32. NaN stays NaN.
static inline Vec Tanh(Vec x) {
  const Vec clamped = Vec::Max(Vec::Set1(-9.1f), Vec::Min(Vec::Set1(9.1f), x));
  const Vec e = ExpMinusOne(Vec::Add(clamped, clamped));
  return Vec::Div(e, Vec::Add(e, Vec::Set1(2.0f)));
}

// cap * tanh(x / cap).
static inline Vec SoftCap(Vec x, Vec cap, Vec inverse_cap) { return Vec::Mul(cap, Tanh(Vec::Mul(x, inverse_cap))); }
