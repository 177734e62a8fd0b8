// What the AMX kernels have in common: how x lies in memory, the tile registers' roles, and the order of the passes.
// Included inside a namespace with `Registers`, which is TileRegisters or emulates it.

inline constexpr int64_t kUnitBytes = 4, kUnitRowBytes = 64;  // of x, and of a panel's rows for one unit
inline constexpr int64_t kChunkUnits = 16;                    // units of a row of a tile register
// Approximate size of the rows of x that all panels are multiplied by before the next rows. They must fit in L2
// together with the panels in use.
inline constexpr int64_t kRowGroupBytes = 1 << 20;
// The most tiles of such a group, which bounds the memory for their sums.
inline constexpr int64_t kMaxGroupTiles = 64;

// Returns the number of tiles of a group of this size: even, and from min_tiles to kMaxGroupTiles.
static int64_t TilesPerGroup(int64_t num_units, int64_t min_tiles) {
  const int64_t pair_bytes = 2 * kAmxTileRows * num_units * kUnitBytes;
  const int64_t tiles = 2 * (kRowGroupBytes / (pair_bytes + 1) + 1);
  if (tiles < min_tiles) return min_tiles;
  return tiles < kMaxGroupTiles ? tiles : kMaxGroupTiles;
}

// Stores the units of a tile in chunks, see PackedActivations: a tile register loads consecutive lines.
struct Chunks {
  static constexpr int64_t kRows = kAmxTileRows;
  static void Store(const TileUnits<kRows>& columns, uint32_t* tile, int64_t num_rows, int64_t num_units, int64_t unit,
                    int64_t count) {
    for (int64_t u = 0; u < count; u += kChunkUnits) {
      const int64_t left = num_units - (unit + u), width = left < kChunkUnits ? left : kChunkUnits;
      uint32_t* const to = tile + (unit + u) * num_rows;
      for (int64_t r = 0; r < num_rows; ++r) {
        __builtin_memcpy(to + r * width, columns.units[r] + u, static_cast<size_t>(width) * sizeof(uint32_t));
      }
    }
  }
};

// A pass multiplies up to two tiles of x by up to two panels, which takes all eight registers.
template <int kTile, int kPanel>
inline constexpr int kSumRegister = 2 * kTile + kPanel;
template <int kTile>
inline constexpr int kXRegister = 4 + kTile;
template <int kPanel>
inline constexpr int kWRegister = 6 + kPanel;

// Loads a tile of x. kOnce: the tile must not replace the panels in L1.
template <bool kOnce, int kTile>
[[gnu::always_inline]] static inline void LoadX(const uint32_t* x, int64_t stride) {
  if constexpr (kOnce) {
    Registers::template LoadOnce<kXRegister<kTile>>(x, stride);
  } else {
    Registers::template Load<kXRegister<kTile>>(x, stride);
  }
}

// A group of tiles.
struct TileGroup {
  int64_t num_tiles;
  int64_t begins[kMaxGroupTiles + 1];  // the first row of each tile, and the row after the last

  TileGroup(const PackedActivationsView& x, int64_t begin, int64_t end) : num_tiles(end - begin) {
    for (int64_t tile = begin; tile <= end; ++tile) begins[tile - begin] = TileBegin(x.num_rows, tile, kAmxTileRows);
  }
  int64_t count() const { return num_tiles; }
};

// The tiles of a pass.
template <int kTiles>
struct PassInput {
  const uint32_t* units[kTiles];
  int64_t begin[kTiles];
  int64_t num_rows[kTiles];
  int64_t num_units;

  // tile: the first of them in the group
  PassInput(const PackedActivationsView& x, const TileGroup& tiles, int64_t tile) : num_units(x.num_units) {
    for (int t = 0; t < kTiles; ++t) {
      begin[t] = tiles.begins[tile + t];
      num_rows[t] = tiles.begins[tile + t + 1] - begin[t];
      units[t] = x.units + begin[t] * x.num_units;
    }
  }
  // Loads the units from `unit` on, which are in one chunk. kOnce: see LoadX
  template <bool kOnce>
  [[gnu::always_inline]] void LoadAt(int64_t unit) const {
    const int64_t chunk = unit / kChunkUnits * kChunkUnits, left = num_units - chunk;
    const int64_t width = left < kChunkUnits ? left : kChunkUnits;
    Unroll<kTiles>(
        [&](auto t) { LoadX<kOnce, t>(units[t] + chunk * num_rows[t] + (unit - chunk), width * kUnitBytes); });
  }
};

template <int kTiles, int kPanels>
static inline void SetSumsToZero() {
  Unroll<kTiles>([&](auto t) { Unroll<kPanels>([&](auto p) { Registers::template SetZero<kSumRegister<t, p>>(); }); });
}

// The sums of a tile and kPanels panels, as the registers store them. A pass has one for each of its tiles.
template <int kPanels, typename T>
struct alignas(64) TileSums {
  T values[kPanels][kAmxTileRows][kPanelRows];
};

template <int kTiles, int kPanels, typename Sums>
static inline void LoadSums(const Sums* sums) {
  Unroll<kTiles>([&](auto t) {
    Unroll<kPanels>([&](auto p) { Registers::template Load<kSumRegister<t, p>>(sums[t].values[p], kUnitRowBytes); });
  });
}
// kTile: whose registers are stored
template <int kTile, int kPanels, typename T>
static inline void StoreTileSums(TileSums<kPanels, T>& sums) {
  Unroll<kPanels>([&](auto p) { Registers::template Store<kSumRegister<kTile, p>>(sums.values[p], kUnitRowBytes); });
}
template <int kTiles, int kPanels, typename Sums>
static inline void StoreSums(Sums* sums) {
  Unroll<kTiles>([&](auto t) {
    Unroll<kPanels>([&](auto p) { Registers::template Store<kSumRegister<t, p>>(sums[t].values[p], kUnitRowBytes); });
  });
}

// y is written past the caches if it has at least this many bytes: it would not stay in L2 until the next layer reads
// it, and writing a line into a cache reads it first.
inline constexpr int64_t kStreamedBytes = 2 << 20;

// Stores the sums of a tile's rows for kPanels panels, whose first row of w is n, after adding the bias.
class OutputRows {
 public:
  OutputRows(const TileOutput& output, int64_t num_rows)
      : output_(output),
        is_streamed_(num_rows * output.y_stride * 4 >= kStreamedBytes && output.y_stride % kPanelRows == 0 &&
                     reinterpret_cast<uintptr_t>(output.y) % 64 == 0) {}

  template <int kPanels>
  void Store(const TileSums<kPanels, float>& sums, int64_t row, int64_t num_rows, int64_t n) const {
    float* to = output_.y + row * output_.y_stride + n;
    const int64_t left = output_.num_rows_w - n;
    if (left < kPanels * kPanelRows) return StorePart(sums, to, num_rows, n);
    Vec bias[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      bias[p] = output_.bias == nullptr ? Vec::Zero() : Vec::Load(output_.bias + n + p * kPanelRows);
    }
    for (int64_t r = 0; r < num_rows; ++r, to += output_.y_stride) {
      for (int p = 0; p < kPanels; ++p) {
        const Vec sum = Vec::Add(Vec::Load(sums.values[p][r]), bias[p]);
        if (is_streamed_) {
          _mm512_stream_ps(to + p * kPanelRows, sum.v);
        } else {
          sum.Store(to + p * kPanelRows);
        }
      }
    }
  }
  // Stores the sums of one row for a panel.
  [[gnu::always_inline]] void StoreLine(Vec sum, int64_t row, int64_t n) const {
    float* const to = output_.y + row * output_.y_stride + n;
    const int64_t left = output_.num_rows_w - n;
    if (left < kPanelRows) return StorePartOfLine(sum, to, n);
    const Vec result = Vec::Add(sum, output_.bias == nullptr ? Vec::Zero() : Vec::Load(output_.bias + n));
    if (is_streamed_) {
      _mm512_stream_ps(to, result.v);
    } else {
      result.Store(to);
    }
  }

 private:
  // For fewer rows of w than the panels have.
  template <int kPanels>
  [[gnu::noinline]] void StorePart(const TileSums<kPanels, float>& sums, float* to, int64_t num_rows, int64_t n) const {
    for (int64_t r = 0; r < num_rows; ++r, to += output_.y_stride) {
      for (int64_t p = 0; p < kPanels; ++p) {
        if (output_.num_rows_w <= n + p * kPanelRows) break;
        StorePartOfLine(Vec::Load(sums.values[p][r]), to + p * kPanelRows, n + p * kPanelRows);
      }
    }
  }
  void StorePartOfLine(Vec sum, float* to, int64_t n) const {
    const int64_t left = output_.num_rows_w - n;
    const int lanes = static_cast<int>(left < kPanelRows ? left : kPanelRows);
    if (output_.bias != nullptr) sum = Vec::Add(sum, Vec::LoadPartial(output_.bias + n, lanes));
    sum.StorePartial(to, lanes);
  }

  TileOutput output_;
  bool is_streamed_;
};

// Prefetches memory that is read later into L2, a part in each of several steps.
template <int kPanels>
class BlockPrefetch {
 public:
  // panels: where the memory starts in each panel. bytes: in each panel. steps: expected number of calls of Step
  BlockPrefetch(const uint8_t* const (&panels)[kPanels], int64_t bytes, int64_t steps)
      : bytes_(bytes), per_step_(((bytes + 63) / 64 + steps - 1) / steps * 64) {
    for (int p = 0; p < kPanels; ++p) panels_[p] = panels[p];
  }
  [[gnu::always_inline]] void Step() {
    const int64_t end = next_ + per_step_ < bytes_ ? next_ + per_step_ : bytes_;
    for (; next_ < end; next_ += 64) {
      for (int p = 0; p < kPanels; ++p) __builtin_prefetch(panels_[p] + next_, 0, 2);
    }
  }

 private:
  const uint8_t* panels_[kPanels];
  int64_t bytes_, per_step_, next_ = 0;
};

// Multiplies all panels by a group of tiles before the next. units_per_dot: units of a row that one instruction
// multiplies, at most kChunkUnits.
template <typename Kernel>
static void RunAllPasses(const Kernel& kernel, const PackedActivationsView& x, int64_t units_per_dot,
                         int64_t panel_begin, int64_t panel_end) {
  const int64_t num_tiles = NumTiles(x.num_rows, kAmxTileRows);
  if (num_tiles == 0) return;
  // The last tile is one of the largest. Loading a smaller one also loads memory behind its rows, whose results are not
  // used.
  const int64_t num_rows = x.num_rows - TileBegin(x.num_rows, num_tiles - 1, kAmxTileRows);
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
  // Groups of nearly equal size, with pairs of tiles except at the end.
  const int64_t num_pairs = (num_tiles + 1) / 2, pairs_per_group = kernel.tiles_per_group() / 2;
  const int64_t num_groups = (num_pairs + pairs_per_group - 1) / pairs_per_group;
  for (int64_t group = 0; group < num_groups; ++group) {
    const int64_t end = 2 * (num_pairs * (group + 1) / num_groups);
    const TileGroup tiles(x, 2 * (num_pairs * group / num_groups), end < num_tiles ? end : num_tiles);
    kernel.Run(tiles, panel_begin, panel_end);
  }
  Registers::Release();
  _mm_sfence();  // so that other threads see streamed lines before they see that the call has returned
}
