// Packs rows of x into tiles, rounded to bfloat16. Included inside an instruction set's namespace, which defines how
// many units hold a pair of columns, after pack_units.inl.

template <typename Layout>
static void PackBFloat16(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile) {
  const int64_t begin = TileBegin(to.num_rows, tile, Layout::kRows);
  const int64_t num_rows = TileBegin(to.num_rows, tile + 1, Layout::kRows) - begin;
  uint32_t* units = to.units + begin * to.num_units;
  TileUnits<Layout::kRows> columns;
  float padded[kScaleColumns];
  constexpr int64_t kColumnsPerUnit = 2 / kUnitsPerPair, kColumns = kMaxUnits * kColumnsPerUnit;
  for (int64_t k = 0; k < to.num_columns; k += kColumns) {
    for (int64_t r = 0; r < num_rows; ++r) {
      const float* from = Columns(x + (begin + r) * x_stride, k, to.num_columns, padded);
      for (int64_t i = 0; i < kColumns; i += 2 * Vec::kLanes)
        StorePairs(from + i, columns.units[r] + i / kColumnsPerUnit);
    }
    const int64_t unit = k / kColumnsPerUnit, left = to.num_units - unit;
    Layout::Store(columns, units, num_rows, to.num_units, unit, left < kMaxUnits ? left : kMaxUnits);
  }
}
