// Multiplies int8 tiles by panels of codes of 4 to 8 bits. Included inside an instruction set's namespace.

// Hides from g++ what a pointer is computed from.
template <typename T>
[[gnu::always_inline]] static inline T* Opaque(T* p) {
  asm("" : "+r"(p));
  return p;
}

// Float accumulators. If a tile has more than kMaxRegisters, they stay in L1, because the integer accumulators need the
// registers.
template <int kRows, int kPanels, int kMaxRegisters = 8>
class FloatAccumulators {
 public:
  struct Storage {
    alignas(64) float values[kRows * kPanels * Vec::kLanes];
  };

  [[gnu::always_inline]] explicit FloatAccumulators(Storage& storage) : values_(storage.values) {
    Hide();
    Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { Set(r, p, Vec::Zero()); }); });
  }
  // Call it before each use. Otherwise g++ also keeps a copy of a large array, in registers that it must spill.
  [[gnu::always_inline]] void Hide() {
    if constexpr (kRows * kPanels > kMaxRegisters) values_ = Opaque(values_);
  }
  [[gnu::always_inline]] Vec Get(int r, int p) const { return Vec::Load(values_ + (r * kPanels + p) * Vec::kLanes); }
  [[gnu::always_inline]] void Set(int r, int p, Vec v) const { v.Store(values_ + (r * kPanels + p) * Vec::kLanes); }

 private:
  float* values_;  // outside Storage, so that stores to the values cannot change the pointer
};

// The integer accumulators of a tile's rows and kPanels panels.
template <typename Sums, int kRows, int kPanels>
struct IntTile {
  // A single row has two accumulators per panel, for alternate units, so that their dot products need not wait for each
  // other. One-byte codes use only the first.
  static constexpr int kParts = kRows == 1 ? 2 : 1;
  // Whether AddTwoDots is faster than two calls of AddDots.
  static constexpr bool kTwoUnits = requires { &Sums::AddTwoDotsAt; };
  // Whether one load reads the units of four rows.
  static constexpr bool kUsesQuad = [] {
    if constexpr (requires { typename Sums::Quad; }) return kPanels == 1 && kRows >= Sums::kMinRowsOfQuad;
    return false;
  }();
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
    if constexpr (kUsesQuad) return AddDotsOfQuad<kPart>(codes[0], units);
    Unroll<kRows>([&](auto r) {
      if constexpr (kPanels == 1) {
        dots[kPart % kParts][r][0].AddDotAt(codes[0], units + r);
      } else {
        const auto four = Sums::Broadcast(units[r]);
        Unroll<kPanels>([&](auto p) { dots[kPart % kParts][r][p].AddDot(codes[p], four); });
      }
    });
  }
  // Adds eight columns, the second four with the units at `next`.
  template <typename Loaded>
  [[gnu::always_inline]] void AddTwoDots(const Loaded (&first)[kPanels], const Loaded (&second)[kPanels],
                                         const uint32_t* units, const uint32_t* next) {
    Unroll<kRows>([&](auto r) {
      Unroll<kPanels>([&](auto p) { dots[0][r][p].AddTwoDotsAt(first[p], second[p], units + r, next + r); });
    });
  }
  [[gnu::always_inline]] Vec ToFloat(int r, int p) const {
    if constexpr (kParts == 1) return dots[0][r][p].ToFloat();
    return dots[0][r][p].Plus(dots[kParts - 1][r][p]).ToFloat();
  }

 private:
  template <int kPart, typename Loaded>
  [[gnu::always_inline]] void AddDotsOfQuad(const Loaded& codes, const uint32_t* units) {
    const auto quad = Sums::Quad::Load(units);
    Unroll<kRows>([&](auto r) {
      auto& sum = dots[kPart % kParts][r][0];
      if constexpr (r < 4) {
        sum.AddDot(codes, quad.template Broadcast<r>());
      } else {
        sum.AddDotAt(codes, units + r);
      }
    });
  }
};

// With an instruction that multiplies two rows of x by two outputs, each accumulator belongs to two rows. An odd row is
// multiplied together with zeros.
template <typename Sums, int kRows, int kPanels>
requires(kRows > 1 && requires { typename Sums::TwoRows; }) struct IntTile<Sums, kRows, kPanels> {
  static constexpr bool kTwoUnits = true;
  using TwoRows = typename Sums::TwoRows;
  TwoRows dots[(kRows + 1) / 2][kPanels];

  [[gnu::always_inline]] void Start(const int32_t* offsets) {
    Unroll<(kRows + 1) / 2>([&](auto i) {
      const TwoRows start = TwoRows::Start(offsets[2 * i], 2 * i + 1 < kRows ? offsets[2 * i + 1] : 0);
      Unroll<kPanels>([&](auto p) { dots[i][p] = start; });
    });
  }
  template <typename Loaded>
  [[gnu::always_inline]] void AddTwoDots(const Loaded (&first)[kPanels], const Loaded (&second)[kPanels],
                                         const uint32_t* units, const uint32_t* next) {
    Unroll<kPanels>([&](auto p) {
      const auto codes = TwoRows::Interleave(first[p], second[p]);
      Unroll<(kRows + 1) / 2>([&](auto i) {
        constexpr bool kBoth = 2 * decltype(i)::value + 1 < kRows;
        dots[i][p].Add(codes, TwoRows::template LoadUnits<kBoth>(units + 2 * i, next + 2 * i));
      });
    });
  }
  [[gnu::always_inline]] Vec ToFloat(int r, int p) const { return dots[r / 2][p].ToFloat(r % 2); }
};

// Adds the dot products of two units of four columns.
template <int kRows, int kPanels, typename Loaded, typename Sums>
[[gnu::always_inline]] static inline void AddTwoUnits(const Loaded (&first)[kPanels], const Loaded (&second)[kPanels],
                                                      const uint32_t* units, const uint32_t* next,
                                                      IntTile<Sums, kRows, kPanels>& t) {
  if constexpr (IntTile<Sums, kRows, kPanels>::kTwoUnits) {
    t.AddTwoDots(first, second, units, next);
  } else {
    t.template AddDots<0>(first, units);
    t.template AddDots<1>(second, next);
  }
}

// Adds the dot products of num_runs runs of one-byte codes. num_runs is even.
template <int kUnroll, int kRows, int kPanels>
[[gnu::always_inline]] static inline void AddByteRuns(const uint8_t* const (&codes)[kPanels],
                                                      PanelPrefetch<kRows, kPanels>& ahead, int64_t offset,
                                                      int64_t num_runs, const uint32_t* units, int64_t stride,
                                                      IntTile<IntSums, kRows, kPanels>& t) {
  const auto load = [&](int64_t run, Codes(&loaded)[kPanels]) __attribute__((always_inline)) {
    ahead.Line();
    Unroll<kPanels>([&](auto p) { loaded[p] = Codes::Load(codes[p] + offset + run * 64); });
  };
  constexpr bool kTwoUnits = IntTile<IntSums, kRows, kPanels>::kTwoUnits;
#pragma GCC unroll 1
  for (int64_t run = 0; run < num_runs; run += kTwoUnits ? 2 : kUnroll) {
    if constexpr (kTwoUnits) {
      Codes first[kPanels], second[kPanels];
      load(run, first);
      load(run + 1, second);
      t.AddTwoDots(first, second, units, units + stride);
      units += 2 * stride;
    } else {
      Unroll<kUnroll>([&](auto i) {
        Codes loaded[kPanels];
        load(run + i, loaded);
        t.template AddDots<0>(loaded, units);
        units += stride;
      });
    }
  }
}

// Multiplies blocks of one-byte codes by the units of x. A block consists of runs of 64 bytes.
struct ByteRuns {
  using Sums = IntSums;
  using Shape = NarrowScaleShape;
  using WideShape = WideScaleShape;  // with as many scales as x
  static constexpr int kMaxFloatRegisters = 8;

  // Adds a block of each panel.
  template <int kRows, int kPanels>
  [[gnu::always_inline]] void AddBlock(const uint8_t* const (&codes)[kPanels], PanelPrefetch<kRows, kPanels>& ahead,
                                       int64_t block, const uint32_t* units, int64_t stride,
                                       IntTile<Sums, kRows, kPanels>& t) const {
    // Unrolled for three or four rows and one panel, where loop overhead would outweigh the dot products.
    constexpr int kUnroll = kRows > 2 && kRows * kPanels <= 4 ? 4 : 1;
    AddByteRuns<kUnroll>(codes, ahead, block * kBlockColumns * kPanelRows, kBlockColumns / 4, units, stride, t);
  }
  // Adds blocks [block, end) of each panel.
  template <int kRows, int kPanels>
  [[gnu::always_inline]] void AddBlocks(const uint8_t* const (&codes)[kPanels], PanelPrefetch<kRows, kPanels>& ahead,
                                        int64_t block, int64_t end, const uint32_t* units, int64_t stride,
                                        IntTile<Sums, kRows, kPanels>& t) const {
    const int64_t num_runs = (end - block) * kBlockColumns / 4;
    AddByteRuns<1>(codes, ahead, block * kBlockColumns * kPanelRows, num_runs, units, stride, t);
  }
};

// Like ByteRuns, for five-bit codes.
struct FiveBitRuns {
  using Sums = SixBitSums;
  using Shape = SixBitShape;
  static constexpr int kMaxFloatRegisters = 7;  // unpacking needs more registers

  template <int kRows, int kPanels>
  [[gnu::always_inline]] void AddBlock(const uint8_t* const (&codes)[kPanels], PanelPrefetch<kRows, kPanels>& ahead,
                                       int64_t block, const uint32_t* units, int64_t stride,
                                       IntTile<Sums, kRows, kPanels>& t) const {
    constexpr int64_t kRuns = kBlockColumns / 8;
    const int64_t offset = block * (kRuns + 1) * 64;
    Bytes upper[kPanels];  // in step `run`, bits 0 and 4 of each byte belong to its two codes
    ahead.template Line<true>();
    Unroll<kPanels>([&](auto p) { upper[p] = Bytes::Load(codes[p] + offset + kRuns * 64); });
    const uint32_t* next = Opaque(units + kRuns * stride);
#pragma GCC unroll 1
    for (int64_t run = 0; run < kRuns; ++run) {
      SixBitCodes low[kPanels], high[kPanels];
      ahead.template Line<true>();
      Unroll<kPanels>([&](auto p) {
        const Bytes lower = Bytes::Load(codes[p] + offset + run * 64);
        low[p] = SixBitCodes::From(lower.And(15).Or(upper[p].template ShiftLeft<4>().And(16)));
        high[p] = SixBitCodes::From(lower.template ShiftRight<4>().And(15).Or(upper[p].And(16)));
        upper[p] = upper[p].template ShiftRight<1>();
      });
      AddTwoUnits(low, high, units, next, t);
      units += stride;
      next += stride;
    }
  }
};

// Like ByteRuns, for six-bit codes. A block here is half a block of PackedQuantMatrix, because it has its own scales:
// the low nibbles, then the high nibbles.
struct SixBitRuns {
  using Sums = SixBitSums;
  using Shape = SixBitShape;
  static constexpr int kMaxFloatRegisters = 8;

  template <int kRows, int kPanels>
  [[gnu::always_inline]] void AddBlock(const uint8_t* const (&codes)[kPanels], PanelPrefetch<kRows, kPanels>& ahead,
                                       int64_t block, const uint32_t* units, int64_t stride,
                                       IntTile<Sums, kRows, kPanels>& t) const {
    if (block % 2 == 0) {
      AddHalf<0, kRows, kPanels>(codes, ahead, block, units, stride, t);
    } else {
      AddHalf<1, kRows, kPanels>(codes, ahead, block, units, stride, t);
    }
  }

 private:
  template <int kHigh, int kRows, int kPanels>
  [[gnu::always_inline]] static void AddHalf(const uint8_t* const (&codes)[kPanels],
                                             PanelPrefetch<kRows, kPanels>& ahead, int64_t block, const uint32_t* units,
                                             int64_t stride, IntTile<Sums, kRows, kPanels>& t) {
    constexpr int64_t kRuns = kBlockColumns / 8;
    const int64_t offset = block / 2 * (kRuns + 2) * 64;
    const int64_t upper_offset = offset + (kRuns + kHigh) * 64;
    Bytes upper[kPanels];  // in step `run`, bits 0 and 1 of each byte belong to its code
    ahead.template Line<true>();
    Unroll<kPanels>([&](auto p) { upper[p] = Bytes::Load(codes[p] + upper_offset); });
    const auto load = [&](int64_t run, SixBitCodes(&loaded)[kPanels]) __attribute__((always_inline)) {
      if constexpr (kHigh == 0) ahead.template Line<true>();
      Unroll<kPanels>([&](auto p) {
        Bytes lower = Bytes::Load(codes[p] + offset + run * 64);
        if constexpr (kHigh == 1) lower = lower.template ShiftRight<4>();
        loaded[p] = SixBitCodes::From(lower.And(15).Or(upper[p].template ShiftLeft<4>().And(48)));
        upper[p] = upper[p].template ShiftRight<2>();
      });
    };
    const uint32_t* next = Opaque(units + stride);
#pragma GCC unroll 1
    for (int64_t run = 0; run < kRuns; run += 2) {
      SixBitCodes first[kPanels], second[kPanels];
      load(run, first);
      load(run + 1, second);
      AddTwoUnits(first, second, units, next, t);
      units += 2 * stride;
      next += 2 * stride;
    }
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
// Like CodeIsLevel, with sums that may cover more than 32 columns.
struct WideCodeIsLevel {
  using Loaded = SixBitCodes;
  using Sums = SixBitSums;
  using Shape = SixBitShape;

  [[gnu::always_inline]] void Load(const uint8_t* p, SixBitCodes& low, SixBitCodes& high) const {
    const Bytes bytes = Bytes::Load(p);
    low = SixBitCodes::From(bytes.And(15));
    high = SixBitCodes::From(bytes.template ShiftRight<4>().And(15));
  }
};

// Like ByteRuns, for four-bit codes, two per byte.
template <typename Reader>
struct FourBitRuns {
  using Sums = typename Reader::Sums;
  using Shape = typename Reader::Shape;
  using WideShape = WideScaleShape;
  static constexpr int kMaxFloatRegisters = 8;
  Reader reader;

  template <int kRows, int kPanels>
  [[gnu::always_inline]] void AddBlock(const uint8_t* const (&codes)[kPanels], PanelPrefetch<kRows, kPanels>& ahead,
                                       int64_t block, const uint32_t* units, int64_t stride,
                                       IntTile<Sums, kRows, kPanels>& t) const {
    constexpr int64_t kRuns = kBlockColumns / 8;
    const int64_t offset = block * kRuns * 64;
    const uint32_t* next = Opaque(units + kRuns * stride);
    const auto add = [&](int64_t run) __attribute__((always_inline)) {
      typename Reader::Loaded low[kPanels], high[kPanels];
      ahead.Line();
      Unroll<kPanels>([&](auto p) { reader.Load(codes[p] + offset + run * 64, low[p], high[p]); });
      AddTwoUnits(low, high, units, next, t);
      units += stride;
      next += stride;
    };
    // Memory limits a single row: with fewer instructions per line, the CPU looks farther ahead. This is not a call
    // of Unroll, because g++ does not always inline it here, and then the sums pass through memory.
    if constexpr (kRows * kPanels == 1) {
#pragma GCC unroll 8
      for (int64_t run = 0; run < kRuns; ++run) add(run);
      return;
    }
#pragma GCC unroll 1
    for (int64_t run = 0; run < kRuns; ++run) add(run);
  }
  template <int kRows, int kPanels>
  [[gnu::always_inline]] void AddBlocks(const uint8_t* const (&codes)[kPanels], PanelPrefetch<kRows, kPanels>& ahead,
                                        int64_t block, int64_t end, const uint32_t* units, int64_t stride,
                                        IntTile<Sums, kRows, kPanels>& t) const {
    for (; block < end; ++block) {
      AddBlock<kRows, kPanels>(codes, ahead, block, units, stride, t);
      units += kBlockColumns / 4 * stride;
    }
  }
};

// Kernel for weights with as many scales as x: one per 128 columns, or one per row.
template <typename Runs, bool kMinimums>
struct WideScaleTile : Runs::WideShape {
  Runs runs;
  const PackedQuantView& w;
  TileOutput output;
  int64_t panel_bytes;

  template <int kRows, int kPanels>
  void Run(const TileInput& x, int64_t row, int64_t panel) const {
    const int64_t num_blocks = w.num_blocks(), num_scales = x.num_scales;
    const int64_t blocks_per_scale = w.scale_columns / kBlockColumns;
    const uint8_t* codes[kPanels];
    const uint16_t *scales[kPanels], *minimums[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      codes[p] = w.codes + (panel + p) * panel_bytes;
      scales[p] = w.scales + (panel + p) * num_scales * kPanelRows;
      if constexpr (kMinimums) minimums[p] = w.minimums + (panel + p) * num_scales * kPanelRows;
    }
    const int64_t stride = x.num_rows;
    PanelPrefetch<kRows, kPanels> ahead(x, codes[0], panel_bytes);
    const uint32_t* units = x.units + row;
    const float *x_scales = x.scales + row, *x_sums = kMinimums ? x.sums + row : nullptr;
    const int32_t* offsets = x.offsets + row;
    typename FloatAccumulators<kRows, kPanels>::Storage sums_storage;
    FloatAccumulators<kRows, kPanels> sums(sums_storage);
    IntTile<typename Runs::Sums, kRows, kPanels> t;
    int64_t block = 0;
    for (int64_t scale = 0; block < num_blocks; ++scale) {
      output.template Prefetch<kRows, kPanels, 3>(x.begin + row, panel, num_scales - 1 - scale);
      t.Start(offsets);
      offsets += stride;
      const int64_t end = block + blocks_per_scale < num_blocks ? block + blocks_per_scale : num_blocks;
      runs.template AddBlocks<kRows, kPanels>(codes, ahead, block, end, units, stride, t);
      units += (end - block) * kBlockColumns / 4 * stride;
      block = end;
      sums.Hide();
      Vec w_scale[kPanels], minimum[kPanels];
      Unroll<kPanels>([&](auto p) {
        w_scale[p] = Vec::LoadFloat16(scales[p] + scale * kPanelRows);
        if constexpr (kMinimums) minimum[p] = Vec::LoadFloat16(minimums[p] + scale * kPanelRows);
      });
      Unroll<kRows>([&](auto r) {
        const Vec x_scale = Vec::Set1(x_scales[r]);
        Unroll<kPanels>([&](auto p) {
          Vec product = Vec::Mul(t.ToFloat(r, p), w_scale[p]);
          if constexpr (kMinimums) product = Vec::Fma(Vec::Set1(x_sums[r]), minimum[p], product);
          sums.Set(r, p, Vec::Fma(product, x_scale, sums.Get(r, p)));
        });
      });
      x_scales += stride;
      if constexpr (kMinimums) x_sums += stride;
    }
    Unroll<kPanels>([&](auto p) {
      Vec column[kRows];
      Unroll<kRows>([&](auto r) { column[r] = sums.Get(r, p); });
      output.StoreRows(x.begin + row, panel + p, column);
    });
  }
};

// Kernel for weights with several scales per scale of x, one for kColumns columns. Scales: see
// impl/tiles/quant_scales.inl
template <typename Runs, int kColumns, typename Scales>
struct NarrowScaleTile : Runs::Shape {
  Runs runs;
  const PackedQuantView& w;
  TileOutput output;
  int64_t panel_bytes;

  template <int kRows, int kPanels>
  void Run(const TileInput& x, int64_t row, int64_t panel) const {
    constexpr int64_t kBlocks = kScaleColumns / kColumns;
    constexpr bool kMinimums = Scales::kHasMinimums;
    const int64_t num_blocks = (w.num_columns + kColumns - 1) / kColumns, num_scales = x.num_scales;
    const uint8_t* codes[kPanels];
    Scales scales[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      codes[p] = w.codes + (panel + p) * panel_bytes;
      scales[p].Start(w, panel + p);
    }
    const int64_t stride = x.num_rows;
    PanelPrefetch<kRows, kPanels> ahead(x, codes[0], panel_bytes);
    const uint32_t* units = x.units + row;
    const float *x_scales = x.scales + row, *x_sums = kMinimums ? x.sums + row : nullptr;
    const int32_t* offsets = x.offsets + row;
    using Accumulators = FloatAccumulators<kRows, kPanels, Runs::kMaxFloatRegisters>;
    typename Accumulators::Storage sums_storage;
    Accumulators sums(sums_storage);
    Vec group[kRows][kPanels];
    IntTile<typename Runs::Sums, kRows, kPanels> t;
    int64_t block = 0;
    for (int64_t scale = 0; block < num_blocks; ++scale) {
      Unroll<kRows>([&](auto r) { Unroll<kPanels>([&](auto p) { group[r][p] = Vec::Zero(); }); });
      const int64_t end = block + kBlocks < num_blocks ? block + kBlocks : num_blocks;
      output.template Prefetch<kRows, kPanels, 3>(x.begin + row, panel, num_scales - 1 - scale);
      // One row reads the scales as a stream; several take so long that the next panel's scales must be prefetched.
      if (kRows > 1 && x.pass == 0) {
        Unroll<kPanels>([&](auto p) { scales[p].template Prefetch<kBlocks>(block + kPanels * num_blocks); });
      }
      for (; block < end; ++block) {
        t.Start(offsets);
        offsets += stride;
        runs.template AddBlock<kRows, kPanels>(codes, ahead, block, units, stride, t);
        units += kColumns / 4 * stride;
        Unroll<kPanels>([&](auto p) {
          const Vec w_scale = scales[p].Scale(block);
          Vec minimum;
          if constexpr (kMinimums) minimum = scales[p].Minimum(block);
          Unroll<kRows>([&](auto r) {
            Vec sum = Vec::Fma(t.ToFloat(r, p), w_scale, group[r][p]);
            if constexpr (kMinimums) sum = Vec::Fma(Vec::Set1(x_sums[r]), minimum, sum);
            group[r][p] = sum;
          });
        });
        if constexpr (kMinimums) x_sums += stride;
      }
      sums.Hide();
      Unroll<kRows>([&](auto r) {
        const Vec x_scale = Vec::Set1(x_scales[r]);
        Unroll<kPanels>([&](auto p) { sums.Set(r, p, Vec::Fma(group[r][p], x_scale, sums.Get(r, p))); });
      });
      x_scales += stride;
    }
    Unroll<kPanels>([&](auto p) {
      Vec column[kRows];
      Unroll<kRows>([&](auto r) { column[r] = sums.Get(r, p); });
      output.StoreRows(x.begin + row, panel + p, column);
    });
  }
};

static void LinearQuant(const PackedActivationsView& x, const PackedQuantView& w, const float* bias, float* y,
                        int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  const TileOutput output{bias, y, y_stride, w.num_rows};
  const int64_t panel_bytes = w.num_blocks() * w.block_bytes();
  const auto run = [&](auto runs, auto columns, auto scales) {
    RunTiles(NarrowScaleTile<decltype(runs), columns, decltype(scales)>{{}, runs, w, output, panel_bytes}, x,
             panel_begin, panel_end);
  };
  const auto by_32 = [&](auto runs) {
    if (w.has_minimums) return run(runs, Int<32>(), Float16Scales<32, true>());
    run(runs, Int<32>(), Float16Scales<32, false>());
  };
  const auto wide = [&](auto runs, auto has_minimums) {
    RunTiles(WideScaleTile<decltype(runs), has_minimums.value>{{}, runs, w, output, panel_bytes}, x, panel_begin,
             panel_end);
  };
  const bool has_supers = w.supers != nullptr, is_wide = w.scale_columns >= kScaleColumns;
  if (w.levels != nullptr && has_supers) {
    return run(FourBitRuns<TableLevels>{TableLevels(w.levels)}, Int<32>(), SuperScales<32, false>());
  }
  if (w.levels != nullptr) {
    return run(FourBitRuns<TableLevels>{TableLevels(w.levels)}, Int<32>(), Float16Scales<32, false>());
  }
  if (w.bits == 4 && has_supers) return run(FourBitRuns<CodeIsLevel>(), Int<32>(), SuperScales<32, true>());
  if (w.bits == 4 && is_wide && w.has_minimums) return wide(FourBitRuns<WideCodeIsLevel>(), std::true_type());
  if (w.bits == 4 && is_wide) return wide(FourBitRuns<WideCodeIsLevel>(), std::false_type());
  if (w.bits == 4) return by_32(FourBitRuns<CodeIsLevel>());
  if (w.bits == 5 && has_supers) return run(FiveBitRuns(), Int<32>(), SuperScales<32, true>());
  if (w.bits == 5) return by_32(FiveBitRuns());
  if (w.bits == 6) return run(SixBitRuns(), Int<16>(), SuperScales<16, false>());
  if (!is_wide) return by_32(ByteRuns());
  wide(ByteRuns(), std::false_type());
}
