// Multiplies bfloat16 tiles by bfloat16 panels with bfmmla, which multiplies four columns of two rows of x by four
// columns of two outputs. It adds the first two products to the sum and then the other two, each pair as bfdot does
// (BFMatMulAdd in the Arm Architecture Reference Manual), so a single row can use bfdot. Included inside a namespace.

struct BFloat16Tile : BFloat16Shape {
  const PackedMatrixView& w;
  TileOutput output;
  int64_t num_units;
  int64_t panel_bytes;

  template <int kRows, int kPanels>
  void Run(const TileInput& x, int64_t row, int64_t panel) const {
    static_assert(kPanels == 1);
    const uint8_t* const codes = static_cast<const uint8_t*>(w.data) + panel * panel_bytes;
    PanelPrefetch<kRows, 1> ahead(x, codes, panel_bytes);
    std::conditional_t<kRows == 1, OneRow, RowPairs<kRows>> sums;
    constexpr int kParts = 4;
    for (int64_t part = 0, u = 0; part < kParts; ++part) {
      output.template Prefetch<kRows, 1, kParts>(x.begin + row, panel, kParts - 1 - part);
      for (const int64_t end = num_units / 2 * (part + 1) / kParts * 2; u < end; u += 2) {
        ahead.Line();
        ahead.Line();
        const uint32_t* const units = x.units + row + u * x.num_rows;
        sums.Add(LoadPairs(codes + u * 64), LoadPairs(codes + (u + 1) * 64), units, units + x.num_rows);
      }
    }
    if (num_units % 2 != 0) {
      constexpr uint32_t kZeros[kRows] = {};
      const int64_t u = num_units - 1;
      sums.Add(LoadPairs(codes + u * 64), ZeroPairs(), x.units + row + u * x.num_rows, kZeros);
    }
    Unroll<kRows>([&](auto r) { output.Store(x.begin + row + r, panel, sums.Get(r)); });
  }
};

static void LinearBFloat16(const PackedActivationsView& x, const PackedMatrixView& w, const float* bias, float* y,
                           int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  RunTiles(BFloat16Tile{{}, w, {bias, y, y_stride, w.num_rows}, x.num_units, x.num_units * 64}, x, panel_begin,
           panel_end);
}
