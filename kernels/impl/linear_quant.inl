// Multiplies int8 tiles by panels of 8-bit, 6-bit or 4-bit codes. Included inside an instruction set's namespace.

// Float accumulators. Those of large tiles stay in L1, because the integer accumulators need the registers.
template <int kRows, int kPanels>
class FloatAccumulators {
 public:
  struct Storage {
    alignas(64) float values[kRows * kPanels * Vec::kLanes];
  };

  [[gnu::always_inline]] explicit FloatAccumulators(Storage& storage) : values_(storage.values) {
    // Hide a large array from the compiler, which would otherwise keep it in registers and spill everything.
    if constexpr (kRows * kPanels > 8) asm("" : "+r"(values_));
    Clear();
  }
  [[gnu::always_inline]] void Clear() const {
    Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { Set(r, p, Vec::Zero()); }); });
  }
  [[gnu::always_inline]] Vec Get(int r, int p) const { return Vec::Load(values_ + (r * kPanels + p) * Vec::kLanes); }
  [[gnu::always_inline]] void Set(int r, int p, Vec v) const { v.Store(values_ + (r * kPanels + p) * Vec::kLanes); }

 private:
  float* values_;  // outside Storage, so that stores to the values cannot change the pointer
};

// The integer accumulators of a tile's rows and kPanels panels.
template <typename Sums, int kRows, int kPanels>
struct IntTile {
  // A single row has two accumulators per panel. With four-bit codes, one is for the low nibbles and one for the high
  // nibbles, so that their dot products need not wait for each other. One-byte codes use only the first.
  static constexpr int kParts = kRows == 1 ? 2 : 1;
  Sums dots[kParts][kRows][kPanels];

  [[gnu::always_inline]] void Start(const int32_t* offsets) {
    Unroll<kRows>([&](auto r) {
      const Sums start = Sums::Start(offsets[r]);
      Unroll<kPanels>([&](auto p) { dots[0][r][p] = start; });
    });
    if constexpr (kParts == 2) Unroll<kPanels>([&](auto p) { dots[1][0][p] = Sums::Start(0); });
  }
  // Adds four columns. units[r] holds these columns of row r.
  template <int kPart, typename Loaded>
  [[gnu::always_inline]] void AddDots(const Loaded (&codes)[kPanels], const uint32_t* units) {
    Unroll<kRows>([&](auto r) {
      if constexpr (kPanels == 1) {
        dots[kPart % kParts][r][0].AddDotAt(codes[0], units + r);
      } else {
        const auto four = Sums::Broadcast(units[r]);
        Unroll<kPanels>([&](auto p) { dots[kPart % kParts][r][p].AddDot(codes[p], four); });
      }
    });
  }
  // Adds eight columns. The units of the second four are `next` units after the first.
  template <typename Loaded>
  [[gnu::always_inline]] void AddTwoDots(const Loaded (&first)[kPanels], const Loaded (&second)[kPanels],
                                         const uint32_t* units, int64_t next) {
    Unroll<kRows>([&](auto r) {
      Unroll<kPanels>([&](auto p) { dots[0][r][p].AddTwoDotsAt(first[p], second[p], units + r, units + next + r); });
    });
  }
  [[gnu::always_inline]] Vec ToFloat(int r, int p) const {
    if constexpr (kParts == 1) return dots[0][r][p].ToFloat();
    return dots[0][r][p].Plus(dots[kParts - 1][r][p]).ToFloat();
  }
};

// Kernel for weights with a scale per 128 columns, like x.
struct WideScaleTile : WideScaleShape {
  const PackedQuantView& w;
  TileOutput output;
  int64_t panel_bytes;

  template <int kRows, int kPanels>
  void Run(const TileInput& x, int64_t row, int64_t panel) const {
    constexpr int64_t kRunsPerScale = kScaleColumns / 4;
    const uint8_t* codes[kPanels];
    const uint16_t* scales[kPanels];
    const int64_t num_runs = w.num_blocks() * kBlockColumns / 4, num_scales = w.num_scales();
    for (int p = 0; p < kPanels; ++p) {
      codes[p] = w.codes + (panel + p) * panel_bytes;
      scales[p] = w.scales + (panel + p) * num_scales * kPanelRows;
    }
    const uint32_t* units = x.units + row;
    typename FloatAccumulators<kRows, kPanels>::Storage sums_storage;
    const FloatAccumulators<kRows, kPanels> sums(sums_storage);
    IntTile<IntSums, kRows, kPanels> t;
    int64_t run = 0;
    for (int64_t scale = 0; run < num_runs; ++scale) {
      output.template Prefetch<kRows, kPanels, 3>(x.begin + row, panel, num_scales - 1 - scale);
      t.Start(x.offsets + scale * x.num_rows + row);
      const int64_t end = run + kRunsPerScale < num_runs ? run + kRunsPerScale : num_runs;
      for (; run < end; ++run) {
        Codes loaded[kPanels];
        Prefetch<kRows, kPanels>(codes, panel_bytes, run * 64);
        Unroll<kPanels>([&](auto p) { loaded[p] = Codes::Load(codes[p] + run * 64); });
        t.template AddDots<0>(loaded, units);
        units += x.num_rows;
      }
      Vec w_scale[kPanels];
      Unroll<kPanels>([&](auto p) { w_scale[p] = Vec::LoadFloat16(scales[p] + scale * kPanelRows); });
      Unroll<kRows>([&](auto r) {
        const Vec x_scale = Vec::Set1(x.scales[scale * x.num_rows + row + r]);
        Unroll<kPanels>(
            [&](auto p) { sums.Set(r, p, Vec::Fma(Vec::Mul(t.ToFloat(r, p), w_scale[p]), x_scale, sums.Get(r, p))); });
      });
    }
    Unroll<kRows>(
        [&](auto r) { Unroll<kPanels>([&](auto p) { output.Store(x.begin + row + r, panel + p, sums.Get(r, p)); }); });
  }
};

// Types for one-byte codes: the loaded codes, their accumulators, and the tile shape.
struct EightBits {
  using Loaded = Codes;
  using Sums = IntSums;
  using Shape = NarrowScaleShape;
};
struct SixBits {
  using Loaded = SixBitCodes;
  using Sums = SixBitSums;
  using Shape = SixBitShape;
};

// Multiplies blocks of one-byte codes by the units of x. A block consists of runs of 64 bytes.
template <int kColumns, typename Bits>
struct ByteRuns {
  using Loaded = typename Bits::Loaded;
  using Sums = typename Bits::Sums;
  using Shape = typename Bits::Shape;
  static constexpr int64_t kBlockBytes = kColumns * kPanelRows;

  // Adds the block at byte `offset` of each panel.
  template <int kRows, int kPanels>
  [[gnu::always_inline]] void AddBlock(const TileInput& x, const uint8_t* const (&codes)[kPanels], int64_t panel_bytes,
                                       int64_t offset, const uint32_t* units, IntTile<Sums, kRows, kPanels>& t) const {
    if constexpr (requires { &Sums::AddTwoDotsAt; }) {
#pragma GCC unroll 1
      for (int64_t run = 0; run < kColumns / 4; run += 2, units += 2 * x.num_rows) {
        Loaded first[kPanels], second[kPanels];
        LoadRun<kRows, kPanels>(codes, panel_bytes, offset + run * 64, first);
        LoadRun<kRows, kPanels>(codes, panel_bytes, offset + run * 64 + 64, second);
        t.AddTwoDots(first, second, units, x.num_rows);
      }
    } else {
      // Unrolled for three or four rows and one panel, where loop overhead would outweigh the dot products.
      constexpr int kUnroll = kRows > 2 && kRows * kPanels <= 4 ? 4 : 1;
#pragma GCC unroll 1
      for (int64_t run = 0; run < kColumns / 4; run += kUnroll) {
        Unroll<kUnroll>([&](auto i) {
          Loaded loaded[kPanels];
          LoadRun<kRows, kPanels>(codes, panel_bytes, offset + (run + i) * 64, loaded);
          t.template AddDots<0>(loaded, units);
          units += x.num_rows;
        });
      }
    }
  }

 private:
  template <int kRows, int kPanels>
  [[gnu::always_inline]] static void LoadRun(const uint8_t* const (&codes)[kPanels], int64_t panel_bytes,
                                             int64_t offset, Loaded (&loaded)[kPanels]) {
    Prefetch<kRows, kPanels>(codes, panel_bytes, offset);
    Unroll<kPanels>([&](auto p) { loaded[p] = Loaded::Load(codes[p] + offset); });
  }
};

// Readers of four-bit codes. The levels come from a table, or are the codes themselves.
struct TableLevels {
  using Loaded = Codes;
  using Sums = IntSums;
  using Shape = NarrowScaleShape;
  CodeLevels levels;

  explicit TableLevels(const uint8_t* table) : levels(table) {}
  [[gnu::always_inline]] void Load(const uint8_t* p, Codes& low, Codes& high) const { levels.Load(p, low, high); }
};
struct CodeIsLevel {
  using Loaded = FourBitCodes;
  using Sums = FourBitSums;
  using Shape = FourBitShape;

  [[gnu::always_inline]] void Load(const uint8_t* p, FourBitCodes& low, FourBitCodes& high) const {
    FourBitCodes::Load(p, low, high);
  }
};

// Like ByteRuns, for four-bit codes, two per byte.
template <typename Reader>
struct FourBitRuns {
  using Sums = typename Reader::Sums;
  using Shape = typename Reader::Shape;
  static constexpr int64_t kBlockBytes = kBlockColumns * kPanelRows / 2;
  Reader reader;

  template <int kRows, int kPanels>
  [[gnu::always_inline]] void AddBlock(const TileInput& x, const uint8_t* const (&codes)[kPanels], int64_t panel_bytes,
                                       int64_t offset, const uint32_t* units, IntTile<Sums, kRows, kPanels>& t) const {
    constexpr int64_t kRuns = kBlockColumns / 8;
#pragma GCC unroll 1
    for (int64_t run = 0; run < kRuns; ++run) {
      typename Reader::Loaded low[kPanels], high[kPanels];
      Prefetch<kRows, kPanels>(codes, panel_bytes, offset + run * 64);
      Unroll<kPanels>([&](auto p) { reader.Load(codes[p] + offset + run * 64, low[p], high[p]); });
      t.template AddDots<0>(low, units);
      t.template AddDots<1>(high, units + kRuns * x.num_rows);
      units += x.num_rows;
    }
  }
};

// Kernel for weights with several scales per scale of x and, if kMinimums, as many minimums.
template <typename Runs, int kColumns, bool kMinimums>
struct NarrowScaleTile : Runs::Shape {
  Runs runs;
  const PackedQuantView& w;
  TileOutput output;
  int64_t panel_bytes;

  template <int kRows, int kPanels>
  void Run(const TileInput& x, int64_t row, int64_t panel) const {
    constexpr int64_t kBlocks = kScaleColumns / kColumns;
    const int64_t num_blocks = w.num_scales(), num_scales = x.num_scales;
    const uint8_t* codes[kPanels];
    int64_t scale_begin[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      codes[p] = w.codes + (panel + p) * panel_bytes;
      scale_begin[p] = (panel + p) * num_blocks * kPanelRows;
    }
    const uint32_t* units = x.units + row;
    typename FloatAccumulators<kRows, kPanels>::Storage sums_storage;
    const FloatAccumulators<kRows, kPanels> sums(sums_storage);
    Vec group[kRows][kPanels];
    IntTile<typename Runs::Sums, kRows, kPanels> t;
    int64_t block = 0;
    for (int64_t scale = 0; block < num_blocks; ++scale) {
      Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { group[r][p] = Vec::Zero(); }); });
      const int64_t end = block + kBlocks < num_blocks ? block + kBlocks : num_blocks;
      output.template Prefetch<kRows, kPanels, 3>(x.begin + row, panel, num_scales - 1 - scale);
      for (; block < end; ++block) {
        const int64_t first = block * x.num_rows + row;
        t.Start(x.offsets + first);
        runs.template AddBlock<kRows, kPanels>(x, codes, panel_bytes, block * Runs::kBlockBytes, units, t);
        units += kColumns / 4 * x.num_rows;
        Unroll<kPanels>([&](auto p) {
          const Vec w_scale = Vec::LoadFloat16(w.scales + scale_begin[p] + block * kPanelRows);
          Vec minimum;
          if constexpr (kMinimums) minimum = Vec::LoadFloat16(w.minimums + scale_begin[p] + block * kPanelRows);
          Unroll<kRows>([&](auto r) {
            Vec sum = Vec::Fma(t.ToFloat(r, p), w_scale, group[r][p]);
            if constexpr (kMinimums) sum = Vec::Fma(Vec::Set1(x.sums[first + r]), minimum, sum);
            group[r][p] = sum;
          });
        });
      }
      Unroll<kRows>([&](auto r) {
        const Vec x_scale = Vec::Set1(x.scales[scale * x.num_rows + row + r]);
        Unroll<kPanels>([&](auto p) { sums.Set(r, p, Vec::Fma(group[r][p], x_scale, sums.Get(r, p))); });
      });
    }
    Unroll<kRows>(
        [&](auto r) { Unroll<kPanels>([&](auto p) { output.Store(x.begin + row + r, panel + p, sums.Get(r, p)); }); });
  }
};

static void LinearQuant(const PackedActivationsView& x, const PackedQuantView& w, const float* bias, float* y,
                        int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  const TileOutput output{bias, y, y_stride, w.num_rows};
  const int64_t panel_bytes = w.num_blocks() * w.block_bytes();
  const auto narrow = [&](auto runs, auto columns, auto minimums) {
    using Runs = decltype(runs);
    if (w.minimums != nullptr) {
      if constexpr (minimums)
        RunTiles(NarrowScaleTile<Runs, columns, true>{{}, runs, w, output, panel_bytes}, x, panel_begin, panel_end);
      return;
    }
    RunTiles(NarrowScaleTile<Runs, columns, false>{{}, runs, w, output, panel_bytes}, x, panel_begin, panel_end);
  };
  if (w.levels != nullptr) return narrow(FourBitRuns<TableLevels>{TableLevels(w.levels)}, Int<32>(), Int<0>());
  if (w.bits == 4) return narrow(FourBitRuns<CodeIsLevel>(), Int<32>(), Int<1>());
  if (w.scale_columns == 16) return narrow(ByteRuns<16, SixBits>(), Int<16>(), Int<0>());
  if (w.bits == 6) return narrow(ByteRuns<32, SixBits>(), Int<32>(), Int<1>());
  if (w.scale_columns == 32) return narrow(ByteRuns<32, EightBits>(), Int<32>(), Int<1>());
  RunTiles(WideScaleTile{{}, w, output, panel_bytes}, x, panel_begin, panel_end);
}
