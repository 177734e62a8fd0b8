// Multiplies bfloat16 tiles by bfloat16 panels, one pair of columns at a time. Included inside an instruction set's
// namespace, which defines Pairs and how to add their products.

struct BFloat16Tile : BFloat16Shape {
  const PackedMatrixView& w;
  TileOutput output;
  int64_t num_pairs;
  int64_t panel_bytes;

  template <int kRows, int kPanels>
  void Run(const TileInput& x, int64_t row, int64_t panel) const {
    const uint32_t* units = x.units + row;
    const uint8_t* panels[kPanels];
    for (int p = 0; p < kPanels; ++p) panels[p] = static_cast<const uint8_t*>(w.data) + (panel + p) * panel_bytes;
    PanelPrefetch<kRows, kPanels> ahead(x, panels[0], panel_bytes);
    Vec sums[kRows][kPanels];
    Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { sums[r][p] = Vec::Zero(); }); });
    constexpr int kParts = 4;
    for (int64_t part = 0, u = 0; part < kParts; ++part) {
      output.template Prefetch<kRows, kPanels, kParts>(x.begin + row, panel, kParts - 1 - part);
      for (const int64_t end = num_pairs * (part + 1) / kParts; u < end; ++u) {
        Pairs pairs[kPanels];
        ahead.Line();
        Unroll<kPanels>([&](auto p) { pairs[p] = LoadPairs(panels[p] + u * 64); });
        Unroll<kRows>([&](auto r) {
          const auto two = BroadcastPair(units + r, x.num_rows);
          Unroll<kPanels>([&](auto p) { sums[r][p] = AddPairs(sums[r][p], pairs[p], two); });
        });
        units += kUnitsPerPair * x.num_rows;
      }
    }
    Unroll<kPanels>([&](auto p) {
      Vec column[kRows];
      Unroll<kRows>([&](auto r) { column[r] = sums[r][p]; });
      output.StoreRows(x.begin + row, panel + p, column);
    });
  }
};

static void LinearBFloat16(const PackedActivationsView& x, const PackedMatrixView& w, const float* bias, float* y,
                           int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  const FlushDenormals flush;
  const int64_t num_pairs = x.num_units / kUnitsPerPair;
  RunTiles(BFloat16Tile{{}, w, {bias, y, y_stride, w.num_rows}, num_pairs, num_pairs * 64}, x, panel_begin, panel_end);
}
