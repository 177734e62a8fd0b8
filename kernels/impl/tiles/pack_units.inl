// Packs rows of x into tiles of units. Included inside an instruction set's namespace.

// Number of units in kScaleColumns bfloat16 columns, two per unit. int8 columns need half as many.
inline constexpr int64_t kMaxUnits = kScaleColumns / 2;

// Units of some columns of a tile's rows, before they are interleaved.
template <int64_t kRows>
struct TileUnits {
  uint32_t units[kRows][kMaxUnits];

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

// The order of the units of a tile, see PackedActivations. Store stores `count` units of a tile's rows, the first of
// which is `unit`. `tile`: the tile's first unit.
struct Interleaved {
  static constexpr int64_t kRows = kTileRows;
  static void Store(const TileUnits<kRows>& columns, uint32_t* tile, int64_t num_rows, int64_t /*num_units*/,
                    int64_t unit, int64_t count) {
    columns.InterleaveTo(tile + unit * num_rows, num_rows, count);
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
