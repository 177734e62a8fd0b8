// Packs rows of x into tiles of int8 codes. Included inside an instruction set's namespace, after pack_units.inl.

// If no magnitude in kScaleColumns columns is above this, their codes are zero, because 127 / magnitude could overflow.
inline constexpr float kMinMagnitude = 1e-36f;

// kOffsetColumns is the number of columns per offset.
template <typename Layout, int kOffsetColumns>
static void PackInt8Tile(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile) {
  const int64_t begin = TileBegin(to.num_rows, tile, Layout::kRows);
  const int64_t num_rows = TileBegin(to.num_rows, tile + 1, Layout::kRows) - begin;
  uint32_t* units = to.units + begin * to.num_units;
  float* scales = to.scales + begin * to.num_scales();
  const int64_t num_offsets = to.num_offsets();
  int32_t* offsets = to.offsets + begin * num_offsets;
  float* sums = to.sums == nullptr ? nullptr : to.sums + begin * num_offsets;
  constexpr int64_t kUnits = kScaleColumns / 4;
  constexpr int kOffsets = static_cast<int>(kScaleColumns) / kOffsetColumns;
  TileUnits<Layout::kRows> columns;
  float padded[kScaleColumns];
  for (int64_t k = 0; k < to.num_columns; k += kScaleColumns) {
    const int64_t units_left = to.num_units - k / 4;
    const int64_t first = k / kOffsetColumns;
    const int64_t offsets_left = num_offsets - first < kOffsets ? num_offsets - first : kOffsets;
    for (int64_t r = 0; r < num_rows; ++r) {
      const float* from = Columns(x + (begin + r) * x_stride, k, to.num_columns, padded);
      const float magnitude = LargestMagnitude(from);
      scales[k / kScaleColumns * num_rows + r] = magnitude * (1.0f / 127.0f);
      const Vec inverse = Vec::Set1(magnitude > kMinMagnitude ? 127.0f / magnitude : 0.0f);
      auto* codes = reinterpret_cast<int8_t*>(columns.units[r]);
      int32_t sums_of_eight[kScaleColumns / 8];
      StoreCodes(from, inverse, codes, sums_of_eight);
      StoreCodes(from + 64, inverse, codes + 64, sums_of_eight + 8);
      for (int64_t i = 0; i < offsets_left; ++i) {
        int32_t sum = 0;
        for (int j = 0; j < kOffsetColumns / 8; ++j) sum += sums_of_eight[i * (kOffsetColumns / 8) + j];
        const int64_t index = (first + i) * num_rows + r;
        offsets[index] = -to.code_sums.zero * sum;
        if (sums != nullptr) sums[index] = static_cast<float>(sum);
      }
    }
    Layout::Store(columns, units, num_rows, to.num_units, k / 4, units_left < kUnits ? units_left : kUnits);
  }
}

// Rounds kScaleColumns columns, and returns the sum of their codes.
static inline int32_t StoreAllCodes(const float* x, Vec inverse, int8_t* codes) {
  int32_t sums_of_eight[kScaleColumns / 8], sum = 0;
  StoreCodes(x, inverse, codes, sums_of_eight);
  StoreCodes(x + 64, inverse, codes + 64, sums_of_eight + 8);
  for (const int32_t eight : sums_of_eight) sum += eight;
  return sum;
}

// Packs rows that have one scale each.
template <typename Layout>
static void PackInt8WithRowScales(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile) {
  if (to.num_columns == 0) return;  // no scales
  const int64_t begin = TileBegin(to.num_rows, tile, Layout::kRows);
  const int64_t num_rows = TileBegin(to.num_rows, tile + 1, Layout::kRows) - begin;
  constexpr int64_t kUnits = kScaleColumns / 4;
  TileUnits<Layout::kRows> columns;
  float padded[kScaleColumns], inverse[Layout::kRows];
  int32_t sums[Layout::kRows] = {};
  for (int64_t r = 0; r < num_rows; ++r) {
    float magnitude = 0.0f;  // NaN if a value is not finite
    for (int64_t k = 0; k < to.num_columns; k += kScaleColumns) {
      const float largest = LargestMagnitude(Columns(x + (begin + r) * x_stride, k, to.num_columns, padded));
      if (largest > magnitude || largest != largest) magnitude = largest;
    }
    to.scales[begin + r] = magnitude * (1.0f / 127.0f);
    inverse[r] = magnitude > kMinMagnitude ? 127.0f / magnitude : 0.0f;
  }
  for (int64_t k = 0; k < to.num_columns; k += kScaleColumns) {
    for (int64_t r = 0; r < num_rows; ++r) {
      const float* const from = Columns(x + (begin + r) * x_stride, k, to.num_columns, padded);
      sums[r] += StoreAllCodes(from, Vec::Set1(inverse[r]), reinterpret_cast<int8_t*>(columns.units[r]));
    }
    const int64_t left = to.num_units - k / 4;
    Layout::Store(columns, to.units + begin * to.num_units, num_rows, to.num_units, k / 4,
                  left < kUnits ? left : kUnits);
  }
  for (int64_t r = 0; r < num_rows; ++r) to.offsets[begin + r] = -to.code_sums.zero * sums[r];
}

template <typename Layout>
static void PackInt8(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile) {
  if (to.code_sums.columns == kRowColumns) return PackInt8WithRowScales<Layout>(x, x_stride, to, tile);
  if (to.code_sums.columns == 16) return PackInt8Tile<Layout, 16>(x, x_stride, to, tile);
  if (to.code_sums.columns == 32) return PackInt8Tile<Layout, 32>(x, x_stride, to, tile);
  PackInt8Tile<Layout, static_cast<int>(kScaleColumns)>(x, x_stride, to, tile);
}
