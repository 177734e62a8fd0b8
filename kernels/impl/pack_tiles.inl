// Rows of x -> tiles of units. Included inside an instruction set's namespace.

inline constexpr int64_t kUnitsAtOnce = kScaleColumns / 2;
inline constexpr float kSmallest = 1e-36f;  // columns below it are zero: 127 over them would overflow

// A tile's rows, a stretch of columns at a time, as units that wait to be laid side by side.
struct TileUnits {
  uint32_t units[kTileRows][kUnitsAtOnce];

  void InterleaveTo(uint32_t* to, int64_t num_rows, int64_t count) const {
    if (num_rows == 1) {
      __builtin_memcpy(to, units[0], static_cast<size_t>(count) * sizeof(uint32_t));
      return;
    }
    for (int64_t u = 0; u < count; ++u) {
      for (int64_t r = 0; r < num_rows; ++r) to[u * num_rows + r] = units[r][u];
    }
  }
};

// kScaleColumns columns of one row from column k on, zeros past the end. `padded` has room for them.
static inline const float* Columns(const float* row, int64_t k, int64_t num_columns, float* padded) {
  const int64_t left = num_columns - k;
  if (left >= kScaleColumns) return row + k;
  for (int64_t i = 0; i < kScaleColumns; ++i) padded[i] = i < left ? row[k + i] : 0.0f;
  return padded;
}

static void PackInt8(const float* x, int64_t x_stride, const RowTilesView& to, int64_t tile) {
  const int64_t begin = TileBegin(to.num_rows, tile);
  const int64_t num_rows = TileBegin(to.num_rows, tile + 1) - begin;
  uint32_t* units = to.units + begin * to.num_units;
  float* scales = to.scales + begin * to.num_scales();
  int32_t* offsets = to.offsets + begin * to.num_offsets();
  float* sums = to.sums == nullptr ? nullptr : to.sums + begin * to.num_offsets();
  constexpr int kVecs = static_cast<int>(kScaleColumns) / Vec::kLanes;
  constexpr int64_t kUnits = kScaleColumns / 4;
  const auto vecs_of_offset = static_cast<int>(to.offset_columns / Vec::kLanes);
  TileUnits columns;
  float padded[kScaleColumns];
  for (int64_t k = 0; k < to.num_columns; k += kScaleColumns) {
    const int64_t units_left = to.num_units - k / 4;
    for (int64_t r = 0; r < num_rows; ++r) {
      const float* from = Columns(x + (begin + r) * x_stride, k, to.num_columns, padded);
      Vec largest = Vec::Zero(), not_finite = Vec::Zero();  // the latter becomes NaN
      for (int i = 0; i < kVecs; ++i) {
        const Vec v = Vec::Load(from + i * Vec::kLanes);
        largest = Vec::Max(largest, Vec::Max(Vec::Sub(Vec::Zero(), v), v));
        not_finite = Vec::Fma(v, Vec::Zero(), not_finite);
      }
      const float magnitude = Vec::ReduceMax(largest);
      scales[k / kScaleColumns * num_rows + r] = magnitude * (1.0f / 127.0f) + Vec::ReduceAdd(not_finite);
      const Vec inverse = Vec::Set1(magnitude > kSmallest ? 127.0f / magnitude : 0.0f);
      auto* codes = reinterpret_cast<int8_t*>(columns.units[r]);
      for (int i = 0; i < kVecs;) {
        CodeSum of_codes;
        const int end = i + vecs_of_offset;
        for (; i < end; ++i) {
          of_codes.Store(Vec::Mul(Vec::Load(from + i * Vec::kLanes), inverse), codes + i * Vec::kLanes);
        }
        const int32_t sum = of_codes.Get();
        const int64_t offset = (k + (end - vecs_of_offset) * Vec::kLanes) / to.offset_columns;
        if (offset >= to.num_offsets()) continue;
        offsets[offset * num_rows + r] = -128 * sum;
        if (sums != nullptr) sums[offset * num_rows + r] = static_cast<float>(sum);
      }
    }
    columns.InterleaveTo(units + k / 4 * num_rows, num_rows, units_left < kUnits ? units_left : kUnits);
  }
}
