// Multiplies tiles of x by panels of a packed weight. Included inside an instruction set's namespace.

// The destination of the results of one call.
struct TileOutput {
  const float* bias;
  float* y;
  int64_t y_stride;
  int64_t num_rows_w;

  // Prefetches the lines that Store will write, a few rows in each of the last kSteps steps. A store miss stalls the
  // stores behind it, and prefetching all lines at once stalls the loads. Lines that are prefetched earlier could be
  // evicted: if the row stride is a multiple of the size of an L1 way, all rows compete for the same few sets.
  template <int kRows, int kPanels, int kSteps>
  [[gnu::always_inline]] void Prefetch(int64_t row, int64_t panel, int64_t steps_left) const {
    constexpr int64_t kRowsPerStep = (kRows + kSteps - 1) / kSteps;
    if (steps_left >= kSteps) return;
    const float* to = y + row * y_stride + panel * kPanelRows;
    for (int64_t r = steps_left * kRowsPerStep; r < (steps_left + 1) * kRowsPerStep && r < kRows; ++r) {
      for (int64_t p = 0; p < kPanels; ++p) __builtin_prefetch(to + r * y_stride + p * kPanelRows, 1);
    }
  }
  // Stores the sums of kRows rows, the first of which is `row`. Tests only once what all rows have in common: while a
  // tile ends, its instructions keep the CPU from starting the next.
  template <int kRows>
  [[gnu::always_inline]] void StoreRows(int64_t row, int64_t panel, const Vec (&sums)[kRows]) const {
    const int64_t n = panel * kPanelRows, left = num_rows_w - n, stride = y_stride;
    if (left < kPanelRows) return Unroll<kRows>([&](auto r) { Store(row + r, panel, sums[r]); });
    float* to = y + row * stride + n;
    if (bias == nullptr) return Unroll<kRows>([&](auto r) { sums[r].Store(to + r * stride); });
    const Vec added = Vec::Load(bias + n);
    Unroll<kRows>([&](auto r) { Vec::Add(sums[r], added).Store(to + r * stride); });
  }
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

// One tile of x. A kernel's Run multiplies kRows rows of the tile, starting at `row`, by kPanels panels, starting at
// `panel`.
struct TileInput {
  const uint32_t* units;
  const float* scales;
  const int32_t* offsets;
  const float* sums;
  int64_t num_scales;
  int64_t begin;
  int64_t num_rows;
  int64_t pass, prefetch_step;  // see PanelPrefetch

  // num_offsets: x.num_offsets(), which takes a division.
  TileInput(const PackedActivationsView& x, int64_t num_offsets, int64_t first_row, int64_t rows, int64_t first_pass,
            int64_t step)
      : begin(first_row), num_rows(rows), pass(first_pass), prefetch_step(step) {
    units = x.units + begin * x.num_units;
    num_scales = x.num_scales();
    scales = x.scales + begin * num_scales;
    offsets = x.offsets + begin * num_offsets;
    sums = x.sums == nullptr ? nullptr : x.sums + begin * num_offsets;
  }
};

// Prefetches weights into L2. A kernel calls Line for each line of codes that it loads from each of its kPanels panels.
// If several passes multiply the same panels by different rows, each prefetches an equal part of the next panels.
// Otherwise the first would wait for memory, and memory for the others. Each call of Line then advances by less than a
// line, so most lines are prefetched several times, which costs less than to count.
inline constexpr int64_t kPrefetchBytes = 32 << 10, kMaxPrefetchBytes = 256 << 10;

template <int kRows, int kPanels>
class PanelPrefetch {
 public:
  // The bytes by which each call of Line advances in each panel, if there are num_passes passes.
  static int64_t Step(int64_t num_passes) { return (64 + num_passes - 1) / num_passes; }

  // panel_bytes: from one panel to the next.
  [[gnu::always_inline]] PanelPrefetch(const TileInput& x, const uint8_t* panels, int64_t panel_bytes)
      : next_(panels + kPrefetchBytes), step_(x.prefetch_step) {
    if (step_ == 64) return;
    const int64_t bytes = kPanels * panel_bytes, ahead = bytes < kMaxPrefetchBytes ? bytes : kMaxPrefetchBytes;
    next_ = panels + (ahead > kPrefetchBytes ? ahead : kPrefetchBytes) + (bytes * step_ >> 6) * x.pass;
    if (x.pass * step_ < 64) return;
    next_ = panels;  // earlier passes have prefetched all
    step_ = 0;
  }
  // With a single row, prefetches only if kOneRow: that helps kernels that take long to unpack a line, and on Zen it
  // slows the others down. Uses a loop instead of Unroll, because g++ drops a call of a lambda that only prefetches.
  template <bool kOneRow = kPrefetchOneRow>
  [[gnu::always_inline]] void Line() {
    if constexpr (kRows == 1 && !kOneRow) return;
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) __builtin_prefetch(next_ + p * step_, 0, 2);
    next_ += kPanels * step_;
  }

 private:
  const uint8_t* next_;
  int64_t step_;
};

// Multiplies num_rows rows, at most kRows.
template <typename Kernel, int kRows, int kPanels>
static inline void RunRows(const Kernel& kernel, const TileInput& tile, int64_t row, int64_t num_rows, int64_t panel) {
  if constexpr (kRows > 1) {
    if (num_rows < kRows) return RunRows<Kernel, kRows - 1, kPanels>(kernel, tile, row, num_rows, panel);
  }
  kernel.template Run<kRows, kPanels>(tile, row, panel);
}

// If the tile has more than kRows rows, divides them evenly: 8 rows are 4 and 4 instead of 6 and 2.
template <typename Kernel, int kRows, int kPanels>
static inline void RunTile(const Kernel& kernel, TileInput& tile, int64_t panel) {
  int64_t row = 0;
  for (int64_t passes = (tile.num_rows + kRows - 1) / kRows; passes > 0; --passes, ++tile.pass) {
    const int64_t left = tile.num_rows - row, rows = passes == 1 ? left : (left + passes - 1) / passes;
    RunRows<Kernel, kRows, kPanels>(kernel, tile, row, rows, panel);
    row += rows;
  }
}

// Approximate size of a group of tiles. All panels are multiplied by one group of tiles before the next, so a group
// must fit in L2 together with the panels in use.
inline constexpr int64_t kTileGroupBytes = 384 << 10;

template <typename Kernel, int kRows, int kPanels>
static inline int64_t RunPanels(const Kernel& kernel, const PackedActivationsView& x, int64_t tile_begin,
                                int64_t tile_end, int64_t panel, int64_t panel_end) {
  // TileBegin of each tile, without a division for each.
  const int64_t num_tiles = NumTiles(x.num_rows), least_rows = x.num_rows / num_tiles;
  const int64_t more = x.num_rows % num_tiles, more_at_begin = more * tile_begin % num_tiles;
  const int64_t group_begin = TileBegin(x.num_rows, tile_begin), num_offsets = x.num_offsets();
  const int64_t step =
      PanelPrefetch<kRows, kPanels>::Step((tile_end - tile_begin) * ((least_rows + kRows - 1) / kRows));
  for (; panel + kPanels <= panel_end; panel += kPanels) {
    int64_t begin = group_begin, remainder = more_at_begin, pass = 0;
    for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
      remainder += more;
      const bool has_more = remainder >= num_tiles;
      if (has_more) remainder -= num_tiles;
      const int64_t rows = least_rows + (has_more ? 1 : 0);
      TileInput input(x, num_offsets, begin, rows, pass, step);
      RunTile<Kernel, kRows, kPanels>(kernel, input, panel);
      pass = input.pass;
      begin += rows;
    }
  }
  return panel;
}

// A single row is multiplied by one panel at a time: memory delivers one stream faster than several.
template <typename Kernel>
static void RunTiles(const Kernel& kernel, const PackedActivationsView& x, int64_t panel_begin, int64_t panel_end) {
  const int64_t num_tiles = NumTiles(x.num_rows);
  const int64_t tile_bytes = kTileRows * x.num_units * 4;
  const int64_t tiles_per_group = kTileGroupBytes / (tile_bytes + 1) + 1;
  for (int64_t tile = 0; tile < num_tiles; tile += tiles_per_group) {
    const int64_t tile_end = tile + tiles_per_group < num_tiles ? tile + tiles_per_group : num_tiles;
    int64_t panel = panel_begin;
    if (x.num_rows > Kernel::kFewRows) {
      panel = RunPanels<Kernel, Kernel::kRows, Kernel::kPanels>(kernel, x, tile, tile_end, panel, panel_end);
    } else if (x.num_rows > 1) {
      panel = RunPanels<Kernel, Kernel::kFewRows, Kernel::kPanelsFewRows>(kernel, x, tile, tile_end, panel, panel_end);
    }
    RunPanels<Kernel, Kernel::kRows, 1>(kernel, x, tile, tile_end, panel, panel_end);
  }
}
