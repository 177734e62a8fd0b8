// Norms, sums, scaling, soft cap, exp and rotary embedding, one row or head per call. Included inside an instruction
// set's namespace.

static float SumOfSquares(const float* x, int64_t n) {
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
  return Vec::ReduceAdd(sum);
}

static void MulScaled(const float* x, const float* weight, float factor, int64_t n, float* out) {
  const Vec scale = Vec::Set1(factor);
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) {
    Vec::Mul(Vec::Load(weight + i), Vec::Mul(Vec::Load(x + i), scale)).Store(out + i);
  }
  if (i < n) {
    const int left = static_cast<int>(n - i);
    Vec::Mul(Vec::LoadPartial(weight + i, left), Vec::Mul(Vec::LoadPartial(x + i, left), scale))
        .StorePartial(out + i, left);
  }
}

static void RmsNorm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  MulScaled(x, weight, 1.0f / __builtin_sqrtf(mean + eps), n, out);
}

static void LayerNorm(const float* x, const float* weight, const float* bias, float eps, int64_t n, float* out) {
  Vec sum = Vec::Zero();
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    sum = Vec::Add(sum, Vec::LoadPartial(x + i, lanes));
  }
  const Vec mean = Vec::Set1(Vec::ReduceAdd(sum) / static_cast<float>(n));
  // The second pass sums squared differences from the mean, which avoids cancellation if the mean is large.
  Vec squares = Vec::Zero();
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    const Vec d = Vec::SelectRange(0, lanes, Vec::Sub(Vec::LoadPartial(x + i, lanes), mean), Vec::Zero());
    squares = Vec::Fma(d, d, squares);
  }
  const float variance = Vec::ReduceAdd(squares) / static_cast<float>(n);
  const Vec scale = Vec::Set1(1.0f / __builtin_sqrtf(variance + eps));
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    Vec v = Vec::Mul(Vec::Sub(Vec::LoadPartial(x + i, lanes), mean), scale);
    if (weight != nullptr) v = Vec::Mul(v, Vec::LoadPartial(weight + i, lanes));
    if (bias != nullptr) v = Vec::Add(v, Vec::LoadPartial(bias + i, lanes));
    v.StorePartial(out + i, lanes);
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

static void AddScaled(float* x, const float* y, float factor, int64_t n) {
  const Vec scale = Vec::Set1(factor);
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    // Rounds twice, as if the product were stored and added later.
    Vec::Add(Vec::LoadPartial(x + i, lanes), Vec::Mul(Vec::LoadPartial(y + i, lanes), scale))
        .StorePartial(x + i, lanes);
  }
}

static void Scale(float* x, float factor, int64_t n) {
  const Vec scale = Vec::Set1(factor);
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    Vec::Mul(Vec::LoadPartial(x + i, lanes), scale).StorePartial(x + i, lanes);
  }
}

static void SoftCapRow(float* x, float cap, int64_t n) {
  const Vec caps = Vec::Set1(cap);
  const Vec inverse = Vec::Set1(1.0f / cap);
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    SoftCap(Vec::LoadPartial(x + i, lanes), caps, inverse).StorePartial(x + i, lanes);
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

static void RotaryNeighbors(float* head, const float* cos, const float* sin, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

static void ExpRow(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    Exp(Vec::LoadPartial(x + i, lanes)).StorePartial(out + i, lanes);
  }
}
