// Passes over x and a weight with AMX. Included inside a namespace with `Registers`, which is TileRegisters or emulates
// it.

// A pass multiplies up to two tiles of x by up to two panels, which takes all eight registers.
template <int kTile, int kPanel>
inline constexpr int kSumRegister = 2 * kTile + kPanel;
template <int kTile>
inline constexpr int kXRegister = 4 + kTile;
template <int kPanel>
inline constexpr int kWRegister = 6 + kPanel;

inline constexpr int64_t kUnitBytes = 4, kUnitRowBytes = 64;  // of x, and of a panel's rows for one unit

// The tiles of a pass, in row-major order: units[r * num_units + u].
template <int kTiles>
struct PassInput {
  const uint32_t* units[kTiles];
  int64_t begin[kTiles];
  int64_t num_rows[kTiles];
  int64_t stride;  // bytes per row

  PassInput(const PackedActivationsView& x, int64_t tile) : stride(x.num_units * kUnitBytes) {
    for (int t = 0; t < kTiles; ++t) {
      begin[t] = TileBegin(x.num_rows, tile + t);
      num_rows[t] = TileBegin(x.num_rows, tile + t + 1) - begin[t];
      units[t] = x.units + begin[t] * x.num_units;
    }
  }
  // Loads the units from `unit` on.
  void LoadAt(int64_t unit) const {
    Unroll<kTiles>([&](auto t) { Registers::template Load<kXRegister<t>>(units[t] + unit, stride); });
  }
};

template <int kPanels>
static inline void LoadPanels(const uint8_t* const (&panels)[kPanels], int64_t offset) {
  Unroll<kPanels>([&](auto p) { Registers::template Load<kWRegister<p>>(panels[p] + offset, kUnitRowBytes); });
}

template <int kTiles, int kPanels>
static inline void SetSumsToZero() {
  Unroll<kTiles>([&](auto t) { Unroll<kPanels>([&](auto p) { Registers::template SetZero<kSumRegister<t, p>>(); }); });
}

// The sums of a pass, as the registers store them.
template <int kTiles, int kPanels, typename T>
struct alignas(64) PassSums {
  T values[kTiles][kPanels][kTileRows][kPanelRows];

  void StoreRegisters() {
    Unroll<kTiles>([&](auto t) {
      Unroll<kPanels>([&](auto p) { Registers::template Store<kSumRegister<t, p>>(values[t][p], kUnitRowBytes); });
    });
  }
};

template <typename Kernel, int kPanels>
static inline int64_t RunPasses(const Kernel& kernel, const PackedActivationsView& x, int64_t tile_begin,
                                int64_t tile_end, int64_t panel, int64_t panel_end) {
  for (; panel + kPanels <= panel_end; panel += kPanels) {
    int64_t tile = tile_begin;
    for (; tile + 2 <= tile_end; tile += 2) kernel.template Run<kPanels>(PassInput<2>(x, tile), panel);
    if (tile < tile_end) kernel.template Run<kPanels>(PassInput<1>(x, tile), panel);
  }
  return panel;
}

// units_per_dot: units of a row that one instruction multiplies, at most 16.
template <typename Kernel>
static void RunAllPasses(const Kernel& kernel, const PackedActivationsView& x, int64_t units_per_dot,
                         int64_t panel_begin, int64_t panel_end) {
  const int64_t num_tiles = NumTiles(x.num_rows);
  if (num_tiles == 0) return;
  // The last tile is one of the largest. Loading a smaller one also loads the first row of the tile behind it, whose
  // results are not used.
  const int64_t num_rows = x.num_rows - TileBegin(x.num_rows, num_tiles - 1);
  TileConfig config;
  const auto set = [&](int first, int count, int64_t rows, int64_t row_bytes) {
    for (int i = first; i < first + count; ++i) {
      config.rows[i] = static_cast<uint8_t>(rows);
      config.row_bytes[i] = static_cast<uint16_t>(row_bytes);
    }
  };
  set(kSumRegister<0, 0>, 4, num_rows, kUnitRowBytes);
  set(kXRegister<0>, 2, num_rows, units_per_dot * kUnitBytes);
  set(kWRegister<0>, 2, units_per_dot, kUnitRowBytes);
  Registers::Configure(config);
  const int64_t tile_bytes = kTileRows * x.num_units * kUnitBytes;
  const int64_t tiles_per_group = 2 * (kTileGroupBytes / (2 * tile_bytes + 1) + 1);
  for (int64_t tile = 0; tile < num_tiles; tile += tiles_per_group) {
    const int64_t tile_end = tile + tiles_per_group < num_tiles ? tile + tiles_per_group : num_tiles;
    const int64_t panel = RunPasses<Kernel, 2>(kernel, x, tile, tile_end, panel_begin, panel_end);
    RunPasses<Kernel, 1>(kernel, x, tile, tile_end, panel, panel_end);
  }
  Registers::Release();
}
