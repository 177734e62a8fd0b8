// Packs rows of x into tiles of units. Included inside an instruction set's namespace.

// Number of units in kScaleColumns bfloat16 columns. int8 columns need half as many.
inline constexpr int64_t kMaxUnits = kScaleColumns / 2;
// If no magnitude in kScaleColumns columns is above this, their codes are zero, because 127 / magnitude could overflow.
inline constexpr float kMinMagnitude = 1e-36f;

// Units of kScaleColumns columns of a tile's rows, before they are interleaved.
struct TileUnits {
  uint32_t units[kTileRows][kMaxUnits];

  // Stores unit u of row r at to[u * num_rows + r].
  void InterleaveTo(uint32_t* to, int64_t num_rows, int64_t count) const {
    if (num_rows == 1) {
      __builtin_memcpy(to, units[0], static_cast<size_t>(count) * sizeof(uint32_t));
      return;
    }
    int64_t u = 0;
    for (; num_rows >= 4 && u + 4 <= count; u += 4) {
      // The last four rows may include some that are already stored.
      for (int64_t r = 0; r < num_rows; r += 4) {
        const int64_t first = r + 4 <= num_rows ? r : num_rows - 4;
        InterleaveFour(first, u, to + u * num_rows + first, num_rows);
      }
    }
    for (; u < count; ++u) {
      for (int64_t r = 0; r < num_rows; ++r) to[u * num_rows + r] = units[r][u];
    }
  }

 private:
  using FourUnits = uint32_t __attribute__((vector_size(16)));

  [[gnu::always_inline]] FourUnits Load(int64_t row, int64_t u) const {
    FourUnits four;
    __builtin_memcpy(&four, &units[row][u], sizeof(four));
    return four;
  }
  // Stores units u to u + 3 of four rows.
  [[gnu::always_inline]] void InterleaveFour(int64_t row, int64_t u, uint32_t* to, int64_t stride) const {
    const FourUnits a = Load(row, u), b = Load(row + 1, u), c = Load(row + 2, u), d = Load(row + 3, u);
    const FourUnits ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const FourUnits ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const FourUnits cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const FourUnits cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const FourUnits columns[4] = {
        __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int64_t i = 0; i < 4; ++i) __builtin_memcpy(to + i * stride, &columns[i], sizeof(columns[i]));
  }
};

// The order of the units of a tile, see TileKernels. Each Store stores `count` units of a tile's rows, the first of
// which is `unit`. `tile`: the tile's first unit.
struct Interleaved {
  static void Store(const TileUnits& columns, uint32_t* tile, int64_t num_rows, int64_t /*num_units*/, int64_t unit,
                    int64_t count) {
    columns.InterleaveTo(tile + unit * num_rows, num_rows, count);
  }
};
struct RowMajor {
  static void Store(const TileUnits& columns, uint32_t* tile, int64_t num_rows, int64_t num_units, int64_t unit,
                    int64_t count) {
    for (int64_t r = 0; r < num_rows; ++r) {
      __builtin_memcpy(tile + r * num_units + unit, columns.units[r], static_cast<size_t>(count) * sizeof(uint32_t));
    }
  }
};

// Returns kScaleColumns columns of one row, starting at column k. If fewer are left in the row, copies them to `padded`
// and appends zeros.
static inline const float* Columns(const float* row, int64_t k, int64_t num_columns, float* padded) {
  const int64_t left = num_columns - k;
  if (left >= kScaleColumns) return row + k;
  for (int64_t i = 0; i < kScaleColumns; ++i) padded[i] = i < left ? row[k + i] : 0.0f;
  return padded;
}

// kOffsetColumns is the number of columns per offset.
template <typename Layout, int kOffsetColumns>
static void PackInt8Tile(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile) {
  const int64_t begin = TileBegin(to.num_rows, tile);
  const int64_t num_rows = TileBegin(to.num_rows, tile + 1) - begin;
  uint32_t* units = to.units + begin * to.num_units;
  float* scales = to.scales + begin * to.num_scales();
  const int64_t num_offsets = to.num_offsets();
  int32_t* offsets = to.offsets + begin * num_offsets;
  float* sums = to.sums == nullptr ? nullptr : to.sums + begin * num_offsets;
  constexpr int64_t kUnits = kScaleColumns / 4;
  constexpr int kOffsets = static_cast<int>(kScaleColumns) / kOffsetColumns;
  TileUnits columns;
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

template <typename Layout>
static void PackInt8(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile) {
  if (to.code_sums.columns == 16) return PackInt8Tile<Layout, 16>(x, x_stride, to, tile);
  if (to.code_sums.columns == 32) return PackInt8Tile<Layout, 32>(x, x_stride, to, tile);
  PackInt8Tile<Layout, static_cast<int>(kScaleColumns)>(x, x_stride, to, tile);
}
