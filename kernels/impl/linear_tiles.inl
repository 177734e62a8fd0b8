// Tiles of x against panels of a packed weight. Included inside an instruction set's namespace.

// Where the products of one call go.
struct TileOutput {
  const float* bias;
  float* y;
  int64_t y_stride;
  int64_t num_rows_w;

  // Asks for the lines that Store will write: on its way out of a loop that spills, a store that waits holds up all.
  void Prefetch(int64_t row, int64_t panel) const { __builtin_prefetch(y + row * y_stride + panel * kPanelRows, 1); }
  void Store(int64_t row, int64_t panel, Vec sum) const {
    const int64_t n = panel * kPanelRows;
    const int64_t left = num_rows_w - n;
    const int lanes = left >= kPanelRows ? static_cast<int>(kPanelRows) : static_cast<int>(left);
    if (bias != nullptr) sum = Vec::Add(sum, Vec::LoadPartial(bias + n, lanes));
    float* to = y + row * y_stride + n;
    if (lanes == kPanelRows) {
      sum.Store(to);
    } else {
      sum.StorePartial(to, lanes);
    }
  }
};

// One tile of x. A kernel's Run multiplies kRows rows of it, from `row` on, by kPanels panels from `panel` on.
struct TileInput {
  const uint32_t* units;
  const float* scales;
  const int32_t* offsets;
  int64_t begin;
  int64_t num_rows;

  TileInput(const RowTilesView& x, int64_t tile)
      : begin(TileBegin(x.num_rows, tile)), num_rows(TileBegin(x.num_rows, tile + 1) - begin) {
    units = x.units + begin * x.num_units;
    scales = x.scales + begin * x.num_scales();
    offsets = x.offsets + begin * x.num_offsets();
  }
};

template <typename Kernel, int kRows, int kPanels>
static inline void RunTile(const Kernel& kernel, const TileInput& tile, int64_t row, int64_t panel) {
  if constexpr (kRows > 0) {
    if (tile.num_rows - row < kRows) return RunTile<Kernel, kRows - 1, kPanels>(kernel, tile, row, panel);
    kernel.template Run<kRows, kPanels>(tile, row, panel);
    if (tile.num_rows - row > kRows) RunTile<Kernel, kRows, kPanels>(kernel, tile, row + kRows, panel);
  }
}

template <typename Kernel, int kRows, int kPanels>
static inline int64_t RunPanels(const Kernel& kernel, const RowTilesView& x, int64_t panel, int64_t panel_end) {
  const int64_t num_tiles = NumTiles(x.num_rows);
  for (; panel + kPanels <= panel_end; panel += kPanels) {
    for (int64_t tile = 0; tile < num_tiles; ++tile) {
      RunTile<Kernel, kRows, kPanels>(kernel, TileInput(x, tile), 0, panel);
    }
  }
  return panel;
}

template <typename Kernel>
static void RunTiles(const Kernel& kernel, const RowTilesView& x, int64_t panel, int64_t panel_end) {
  if (x.num_rows == 1) {
    panel = RunPanels<Kernel, 1, Kernel::kPanelsOneRow>(kernel, x, panel, panel_end);
  } else if (x.num_rows <= Kernel::kFewRows) {
    panel = RunPanels<Kernel, Kernel::kFewRows, Kernel::kPanelsFewRows>(kernel, x, panel, panel_end);
  } else {
    panel = RunPanels<Kernel, Kernel::kRows, Kernel::kPanels>(kernel, x, panel, panel_end);
  }
  RunPanels<Kernel, Kernel::kRows, 1>(kernel, x, panel, panel_end);
}
