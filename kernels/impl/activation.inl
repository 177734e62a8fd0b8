// MLP activations, one row per call. Included inside an instruction set's namespace.

struct SiluFunction {
  static Vec Apply(Vec x) { return Vec::Div(x, Vec::Add(Vec::Set1(1.0f), Exp(Vec::Sub(Vec::Zero(), x)))); }
};

// x * sigmoid(1.702 x).
struct QuickGeluFunction {
  static Vec Apply(Vec x) { return Vec::Div(x, Vec::Add(Vec::Set1(1.0f), Exp(Vec::Mul(Vec::Set1(-1.702f), x)))); }
};

// x / 2 * (1 + erf(x / sqrt(2))), computed as max(x, 0) - |x| * erfc(|x| / sqrt(2)) / 2, which avoids cancellation in
// the negative tail. erfc(x) = 1 - erf(x) comes from formula 7.1.26 of Abramowitz and Stegun, whose absolute error is
// at most 1.5e-7.
struct GeluFunction {
  static Vec Apply(Vec x) {
    const Vec magnitude = Vec::Max(x, Vec::Sub(Vec::Zero(), x));
    const Vec z = Vec::Mul(magnitude, Vec::Set1(0.70710678118654752f));
    const Vec t = Vec::Div(Vec::Set1(1.0f), Vec::Fma(Vec::Set1(0.3275911f), z, Vec::Set1(1.0f)));
    Vec p = Vec::Set1(1.061405429f);
    p = Vec::Fma(p, t, Vec::Set1(-1.453152027f));
    p = Vec::Fma(p, t, Vec::Set1(1.421413741f));
    p = Vec::Fma(p, t, Vec::Set1(-0.284496736f));
    p = Vec::Fma(p, t, Vec::Set1(0.254829592f));
    const Vec tail = Vec::Mul(Vec::Mul(p, t), Exp(Vec::Sub(Vec::Zero(), Vec::Mul(z, z))));
    return Vec::Sub(Vec::Max(Vec::Zero(), x), Vec::Mul(magnitude, Vec::Mul(tail, Vec::Set1(0.5f))));
  }
};

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
struct GeluTanhFunction {
  static Vec Apply(Vec x) {
    const Vec cube = Vec::Mul(Vec::Mul(x, x), x);
    const Vec inner = Vec::Mul(Vec::Set1(0.79788456080286536f), Vec::Fma(Vec::Set1(0.044715f), cube, x));
    return Vec::Mul(Vec::Mul(x, Vec::Set1(0.5f)), Vec::Add(Vec::Set1(1.0f), Tanh(inner)));
  }
};

// Max returns its second operand if either operand is NaN, so this order keeps NaN.
struct ReluFunction {
  static Vec Apply(Vec x) { return Vec::Max(Vec::Zero(), x); }
};

struct Relu2Function {
  static Vec Apply(Vec x) {
    const Vec positive = Vec::Max(Vec::Zero(), x);
    return Vec::Mul(positive, positive);
  }
};

struct SigmoidFunction {
  static Vec Apply(Vec x) {
    return Vec::Div(Vec::Set1(1.0f), Vec::Add(Vec::Set1(1.0f), Exp(Vec::Sub(Vec::Zero(), x))));
  }
};

template <typename Function>
static void Activate(const float* x, const float* factor, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) {
    Vec y = Function::Apply(Vec::Load(x + i));
    if (factor != nullptr) y = Vec::Mul(y, Vec::Load(factor + i));
    y.Store(out + i);
  }
  if (i < n) {
    const int left = static_cast<int>(n - i);
    Vec y = Function::Apply(Vec::LoadPartial(x + i, left));
    if (factor != nullptr) y = Vec::Mul(y, Vec::LoadPartial(factor + i, left));
    y.StorePartial(out + i, left);
  }
}

static void ActivationRow(Activation activation, const float* x, const float* factor, int64_t n, float* out) {
  switch (activation) {
    case Activation::kSilu:
      return Activate<SiluFunction>(x, factor, n, out);
    case Activation::kGelu:
      return Activate<GeluFunction>(x, factor, n, out);
    case Activation::kGeluTanh:
      return Activate<GeluTanhFunction>(x, factor, n, out);
    case Activation::kQuickGelu:
      return Activate<QuickGeluFunction>(x, factor, n, out);
    case Activation::kRelu:
      return Activate<ReluFunction>(x, factor, n, out);
    case Activation::kSigmoid:
      return Activate<SigmoidFunction>(x, factor, n, out);
    case Activation::kRelu2:
      return Activate<Relu2Function>(x, factor, n, out);
  }
}

static void ClampedSwiglu(const float* gate, const float* up, float alpha, float limit, int64_t n, float* out) {
  const Vec high = Vec::Set1(limit);
  const Vec low = Vec::Set1(-limit);
  const Vec one = Vec::Set1(1.0f);
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    // The operand order of Min and Max keeps NaN.
    const Vec g = Vec::Min(high, Vec::LoadPartial(gate + i, lanes));
    const Vec u = Vec::Max(low, Vec::Min(high, Vec::LoadPartial(up + i, lanes)));
    const Vec swish = Vec::Div(g, Vec::Add(one, Exp(Vec::Mul(Vec::Set1(-alpha), g))));
    Vec::Mul(Vec::Add(u, one), swish).StorePartial(out + i, lanes);
  }
}
