// Int8 tiles against panels of eight- or four-bit codes. Included inside an instruction set's namespace.

// Sums that wait in the first-level cache while the integer sums have the registers.
template <int kRows, int kPanels>
class WaitingSums {
 public:
  [[gnu::always_inline]] WaitingSums() {
    // The compiler must not know what this points to, or it keeps the sums in registers and spills all.
    asm("" : "+r"(at_));
    Clear();
  }
  WaitingSums(const WaitingSums&) = delete;
  WaitingSums& operator=(const WaitingSums&) = delete;
  [[gnu::always_inline]] void Clear() {
    Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { Set(r, p, Vec::Zero()); }); });
  }
  [[gnu::always_inline]] Vec Get(int r, int p) const { return Vec::Load(at_ + (r * kPanels + p) * Vec::kLanes); }
  [[gnu::always_inline]] void Set(int r, int p, Vec v) { v.Store(at_ + (r * kPanels + p) * Vec::kLanes); }

 private:
  alignas(64) float memory_[kRows * kPanels * Vec::kLanes];
  float* at_ = memory_;
};

// The integer sums of a tile's rows and so many panels.
template <int kRows, int kPanels>
struct IntTile {
  IntSums dots[kRows][kPanels];

  [[gnu::always_inline]] void Start(const int32_t* offsets) {
    Unroll<kRows>([&](auto r) {
      const IntSums start = IntSums::Start(offsets[r]);
      Unroll<kPanels>([&](auto p) { dots[r][p] = start; });
    });
  }
  // Four columns: `units` has those of a tile's rows.
  [[gnu::always_inline]] void AddDots(const Codes (&codes)[kPanels], const uint32_t* units) {
    Unroll<kRows>([&](auto r) {
      const auto four = IntSums::Broadcast(units[r]);
      Unroll<kPanels>([&](auto p) { dots[r][p].AddDot(codes[p], four); });
    });
  }
};

// A scale of the weight for as many columns as one of x.
struct EightBitTile : EightBitShape {
  const PackedQuantView& w;
  TileOutput output;
  int64_t panel_bytes;

  template <int kRows, int kPanels>
  void Run(const TileInput& x, int64_t row, int64_t panel) const {
    constexpr int64_t kRunsOfScale = kScaleColumns / 4;
    const uint8_t* codes[kPanels];
    const uint16_t* scales[kPanels];
    const int64_t num_runs = w.num_blocks() * kBlockColumns / 4;
    for (int p = 0; p < kPanels; ++p) {
      codes[p] = w.codes + (panel + p) * panel_bytes;
      scales[p] = w.scales + (panel + p) * w.num_scales() * kPanelRows;
    }
    const uint32_t* units = x.units + row;
    Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { output.Prefetch(x.begin + row + r, panel + p); }); });
    WaitingSums<kRows, kPanels> sums;
    IntTile<kRows, kPanels> t;
    int64_t run = 0;
    for (int64_t scale = 0; run < num_runs; ++scale) {
      t.Start(x.offsets + scale * x.num_rows + row);
      const int64_t end = run + kRunsOfScale < num_runs ? run + kRunsOfScale : num_runs;
      for (; run < end; ++run) {
        Codes loaded[kPanels];
        Prefetch<kPanels>(x, codes, panel_bytes, run * 64);
        Unroll<kPanels>([&](auto p) { loaded[p] = Codes::Load(codes[p] + run * 64); });
        t.AddDots(loaded, units);
        units += x.num_rows;
      }
      Vec of_w[kPanels];
      Unroll<kPanels>([&](auto p) { of_w[p] = Vec::LoadFloat16(scales[p] + scale * kPanelRows); });
      Unroll<kRows>([&](auto r) {
        const Vec of_x = Vec::Set1(x.scales[scale * x.num_rows + row + r]);
        Unroll<kPanels>(
            [&](auto p) { sums.Set(r, p, Vec::Fma(Vec::Mul(t.dots[r][p].ToFloat(), of_w[p]), of_x, sums.Get(r, p))); });
      });
    }
    Unroll<kRows>(
        [&](auto r) { Unroll<kPanels>([&](auto p) { output.Store(x.begin + row + r, panel + p, sums.Get(r, p)); }); });
  }
};

// A scale of the weight for every block: four of them to one of x.
struct FourBitTile : FourBitShape {
  const PackedQuantView& w;
  TileOutput output;
  int64_t panel_bytes;
  CodeLevels levels;

  template <int kRows, int kPanels>
  void Run(const TileInput& x, int64_t row, int64_t panel) const {
    constexpr int64_t kBlocks = kScaleColumns / kBlockColumns;
    constexpr int kRuns = static_cast<int>(kBlockColumns / 8);
    const int64_t num_blocks = w.num_blocks();
    const uint8_t* codes[kPanels];
    const uint16_t* scales[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      codes[p] = w.codes + (panel + p) * panel_bytes;
      scales[p] = w.scales + (panel + p) * num_blocks * kPanelRows;
    }
    const uint32_t* units = x.units + row;
    Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { output.Prefetch(x.begin + row + r, panel + p); }); });
    WaitingSums<kRows, kPanels> sums;
    IntTile<kRows, kPanels> t;
    int64_t block = 0;
    for (int64_t scale = 0; block < num_blocks; ++scale) {
      Vec group[kRows][kPanels];
      Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { group[r][p] = Vec::Zero(); }); });
      const int64_t end = block + kBlocks < num_blocks ? block + kBlocks : num_blocks;
      for (; block < end; ++block) {
        t.Start(x.offsets + block * x.num_rows + row);
#pragma GCC unroll 1
        for (int64_t run = 0; run < kRuns; ++run) {
          Codes low[kPanels], high[kPanels];
          Prefetch<kPanels>(x, codes, panel_bytes, (block * kRuns + run) * 64);
          Unroll<kPanels>([&](auto p) { levels.Load(codes[p] + (block * kRuns + run) * 64, low[p], high[p]); });
          t.AddDots(low, units);
          t.AddDots(high, units + kRuns * x.num_rows);
          units += x.num_rows;
        }
        Unroll<kPanels>([&](auto p) {
          const Vec of_w = Vec::LoadFloat16(scales[p]);
          Unroll<kRows>([&](auto r) { group[r][p] = Vec::Fma(t.dots[r][p].ToFloat(), of_w, group[r][p]); });
          scales[p] += kPanelRows;
        });
        units += kRuns * x.num_rows;
      }
      Unroll<kRows>([&](auto r) {
        const Vec of_x = Vec::Set1(x.scales[scale * x.num_rows + row + r]);
        Unroll<kPanels>([&](auto p) { sums.Set(r, p, Vec::Fma(group[r][p], of_x, sums.Get(r, p))); });
      });
    }
    Unroll<kRows>(
        [&](auto r) { Unroll<kPanels>([&](auto p) { output.Store(x.begin + row + r, panel + p, sums.Get(r, p)); }); });
  }
};

static void LinearQuant(const RowTilesView& x, const PackedQuantView& w, const float* bias, float* y, int64_t y_stride,
                        int64_t panel_begin, int64_t panel_end) {
  const TileOutput output{bias, y, y_stride, w.num_rows};
  const int64_t panel_bytes = w.num_blocks() * w.block_bytes();
  if (w.levels == nullptr) {
    RunTiles(EightBitTile{{}, w, output, panel_bytes}, x, panel_begin, panel_end);
  } else {
    RunTiles(FourBitTile{{}, w, output, panel_bytes, CodeLevels(w.levels)}, x, panel_begin, panel_end);
  }
}
