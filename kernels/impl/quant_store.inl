// Quantizes floats to IQ4_NL blocks of 32. Included inside an instruction set's namespace.

inline constexpr int kStoredBlock = 32;
inline constexpr float kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr float kIndexes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
// Midpoints between adjacent levels.
inline constexpr float kMiddles[15] = {-115.5f, -93.5f, -74.0f, -57.0f, -42.0f, -28.5f, -16.0f, -4.5f,
                                       7.0f,    19.0f,  31.5f,  45.5f,  61.0f,  79.0f,  101.0f};

static inline float MaxMagnitude(const Vec* x) {
  const Vec zero = Vec::Zero();
  const Vec a = Vec::Max(x[0], Vec::Sub(zero, x[0])), b = Vec::Max(x[1], Vec::Sub(zero, x[1]));
  return Vec::ReduceMax(Vec::Max(a, b));
}

static void StoreIQ4_NL(const float* x, uint8_t* out) {
  const Vec v[2] = {Vec::Load(x), Vec::Load(x + Vec::kLanes)};
  const float largest = MaxMagnitude(v);
  float best = 0.0f, scale = 0.0f;
  // For given levels q, the scale sum(x q) / sum(q q) is the best one. It reduces the squared error from sum(x x) by
  // sum(x q)^2 / sum(q q). Each trial maps the largest |x| to a value near the first level, which has the largest
  // magnitude, or near its negative.
  for (int step = -6; step <= 6 && largest > 0.0f; step += 2) {
    for (int sign = -1; sign <= 1; sign += 2) {
      const Vec inverse = Vec::Set1(static_cast<float>(sign) * (kLevels[0] + static_cast<float>(step)) / largest);
      const Vec q[2] = {StepFunction(Vec::Mul(v[0], inverse), kMiddles, kLevels),
                        StepFunction(Vec::Mul(v[1], inverse), kMiddles, kLevels)};
      // Fma rounds twice on CPUs without hardware FMA, so it is not used here: all CPUs must choose the same of two
      // nearly equal candidates.
      const float xq = Vec::ReduceAdd(Vec::Add(Vec::Mul(v[0], q[0]), Vec::Mul(v[1], q[1])));
      const float qq = Vec::ReduceAdd(Vec::Add(Vec::Mul(q[0], q[0]), Vec::Mul(q[1], q[1])));
      if (xq * xq > best * qq) {
        best = xq * xq / qq;
        scale = xq / qq;
      }
    }
  }
  const Vec inverse = Vec::Set1(scale != 0.0f ? 1.0f / scale : 0.0f);
  float indexes[kStoredBlock];
  for (int i = 0; i < 2; ++i) {
    StepFunction(Vec::Mul(v[i], inverse), kMiddles, kIndexes).Store(indexes + i * Vec::kLanes);
  }
  StoreHalf(scale, out);
  for (int i = 0; i < kStoredBlock / 2; ++i) {
    out[2 + i] = static_cast<uint8_t>(static_cast<int>(indexes[i]) | (static_cast<int>(indexes[i + 16]) << 4));
  }
}

static void QuantizeIQ4_NL(const float* x, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; i += kStoredBlock, out += FormatIQ4_NL::kBytes) StoreIQ4_NL(x + i, out);
}
