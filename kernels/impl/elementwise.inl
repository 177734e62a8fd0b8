// Norm, activation, rotation: one row each. Included inside an instruction set's namespace.

static void RmsNorm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  Vec sum = Vec::Zero();
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) {
    const Vec v = Vec::Load(x + i);
    sum = Vec::Fma(v, v, sum);
  }
  if (i < n) {
    const Vec v = Vec::LoadPartial(x + i, static_cast<int>(n - i));
    sum = Vec::Fma(v, v, sum);
  }
  const float mean = Vec::ReduceAdd(sum) / static_cast<float>(n);
  const Vec scale = Vec::Set1(1.0f / __builtin_sqrtf(mean + eps));
  for (i = 0; i + Vec::kLanes <= n; i += Vec::kLanes) {
    Vec::Mul(Vec::Load(weight + i), Vec::Mul(Vec::Load(x + i), scale)).Store(out + i);
  }
  if (i < n) {
    const int left = static_cast<int>(n - i);
    Vec::Mul(Vec::LoadPartial(weight + i, left), Vec::Mul(Vec::LoadPartial(x + i, left), scale))
        .StorePartial(out + i, left);
  }
}

static inline Vec Silu(Vec x) {
  const Vec e = Exp(Vec::Sub(Vec::Zero(), x));
  return Vec::Div(x, Vec::Add(Vec::Set1(1.0f), e));
}

static void SiluAndMul(const float* gate, const float* up, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) {
    Vec::Mul(Silu(Vec::Load(gate + i)), Vec::Load(up + i)).Store(out + i);
  }
  if (i < n) {
    const int left = static_cast<int>(n - i);
    Vec::Mul(Silu(Vec::LoadPartial(gate + i, left)), Vec::LoadPartial(up + i, left)).StorePartial(out + i, left);
  }
}

static void Add(float* x, const float* y, int64_t n) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) Vec::Add(Vec::Load(x + i), Vec::Load(y + i)).Store(x + i);
  if (i < n) {
    const int left = static_cast<int>(n - i);
    Vec::Add(Vec::LoadPartial(x + i, left), Vec::LoadPartial(y + i, left)).StorePartial(x + i, left);
  }
}

static void Rotary(float* head, const float* cos, const float* sin, int64_t half) {
  for (int64_t i = 0; i < half; i += Vec::kLanes) {
    const int lanes = half - i < Vec::kLanes ? static_cast<int>(half - i) : Vec::kLanes;
    const Vec a = Vec::LoadPartial(head + i, lanes);
    const Vec b = Vec::LoadPartial(head + half + i, lanes);
    const Vec c = Vec::LoadPartial(cos + i, lanes);
    const Vec s = Vec::LoadPartial(sin + i, lanes);
    Vec::Sub(Vec::Mul(a, c), Vec::Mul(b, s)).StorePartial(head + i, lanes);
    Vec::Add(Vec::Mul(b, c), Vec::Mul(a, s)).StorePartial(head + half + i, lanes);
  }
}

static void ExpRow(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    Exp(Vec::LoadPartial(x + i, lanes)).StorePartial(out + i, lanes);
  }
}
