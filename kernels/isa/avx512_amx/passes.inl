// What the AMX kernels have in common: how x lies in memory, the tile registers' roles, and the order of the passes.
// Included inside a namespace with `Registers`, which is TileRegisters or emulates it.

inline constexpr int64_t kUnitBytes = 4, kUnitRowBytes = 64;  // of x, and of a panel's rows for one unit
inline constexpr int64_t kChunkUnits = 16;                    // units of a row of a tile register
// Approximate size of the rows of x that all panels are multiplied by before the next rows. They must fit in L2
// together with the panels in use.
inline constexpr int64_t kRowGroupBytes = 1 << 20;
// The most tiles of such a group, which bounds the memory for their sums.
inline constexpr int64_t kMaxGroupTiles = 64;

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
  // Loads the units from `unit` on, which are in one chunk.
  [[gnu::always_inline]] void LoadAt(int64_t unit) const {
    const int64_t chunk = unit / kChunkUnits * kChunkUnits, left = num_units - chunk;
    const int64_t width = left < kChunkUnits ? left : kChunkUnits;
    Unroll<kTiles>([&](auto t) {
      Registers::template Load<kXRegister<t>>(units[t] + chunk * num_rows[t] + (unit - chunk), width * kUnitBytes);
    });
  }
};

template <int kTiles, int kPanels>
static inline void SetSumsToZero() {
  Unroll<kTiles>([&](auto t) { Unroll<kPanels>([&](auto p) { Registers::template SetZero<kSumRegister<t, p>>(); }); });
}

// The sums of a tile and kPanels panels, as the registers store them.
template <int kPanels, typename T>
struct alignas(64) TileSums {
  T values[kPanels][kAmxTileRows][kPanelRows];
};

// sums: of the pass's tiles
template <int kTiles, int kPanels, typename T>
static inline void StoreSums(TileSums<kPanels, T>* sums) {
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
  bool is_streamed() const { return is_streamed_; }
  const float* At(int64_t row, int64_t n) const { return output_.y + row * output_.y_stride + n; }
  int64_t stride() const { return output_.y_stride; }

 private:
  // For fewer rows of w than the panels have.
  template <int kPanels>
  [[gnu::noinline]] void StorePart(const TileSums<kPanels, float>& sums, float* to, int64_t num_rows, int64_t n) const {
    for (int64_t r = 0; r < num_rows; ++r, to += output_.y_stride) {
      for (int64_t p = 0; p < kPanels; ++p) {
        const int64_t left = output_.num_rows_w - n - p * kPanelRows;
        if (left <= 0) break;
        const int lanes = static_cast<int>(left < kPanelRows ? left : kPanelRows);
        Vec sum = Vec::Load(sums.values[p][r]);
        if (output_.bias != nullptr) sum = Vec::Add(sum, Vec::LoadPartial(output_.bias + n + p * kPanelRows, lanes));
        sum.StorePartial(to + p * kPanelRows, lanes);
      }
    }
  }

  TileOutput output_;
  bool is_streamed_;
};

// Prefetches the lines of y that a pass will store, some in each of several steps. The rows of y are far apart, so a
// store would wait for the translation of its address, too.
template <int kTiles>
class OutputPrefetch {
 public:
  // n: the first row of w
  OutputPrefetch(const OutputRows& output, const PassInput<kTiles>& pass, int64_t n, int64_t steps)
      : next_(output.At(pass.begin[0], n)), stride_(output.stride()) {
    if (output.is_streamed()) return;
    for (int t = 0; t < kTiles; ++t) left_ += pass.num_rows[t];
    per_step_ = steps > 0 ? (left_ + steps - 1) / steps : left_;
  }
  [[gnu::always_inline]] void Step() {
    for (int64_t i = 0; i < per_step_ && left_ > 0; ++i, --left_, next_ += stride_) {
      __builtin_prefetch(next_, 1);
      __builtin_prefetch(next_ + kPanelRows, 1);
    }
  }

 private:
  const float* next_;
  int64_t stride_, left_ = 0, per_step_ = 0;
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
  const int64_t tile_bytes = kAmxTileRows * x.num_units * kUnitBytes;
  int64_t tiles_per_group = 2 * (kRowGroupBytes / (2 * tile_bytes + 1) + 1);
  if (tiles_per_group > kMaxGroupTiles) tiles_per_group = kMaxGroupTiles;
  for (int64_t tile = 0; tile < num_tiles; tile += tiles_per_group) {
    const TileGroup tiles(x, tile, tile + tiles_per_group < num_tiles ? tile + tiles_per_group : num_tiles);
    for (int64_t panel = panel_begin; panel < panel_end; panel += kernel.panels_at_once()) {
      const int64_t end = panel + kernel.panels_at_once();
      kernel.Run(tiles, panel, end < panel_end ? end : panel_end);
    }
  }
  Registers::Release();
  _mm_sfence();  // so that other threads see streamed lines before they see that the call has returned
}
