// Multiplies int8 tiles by panels of codes of 4, 5 and 8 bits with AMX. Included inside a namespace with `Registers`.
// The instruction adds products exactly, and the sums of a scale are scaled as in impl/tiles/linear_quant.inl, so the
// results are those of the VNNI kernels.
//
// The columns that share a scale of x are a group. A block of groups of two panels is unpacked once and multiplied by
// all tiles. While the tile registers multiply a group, the vector registers scale the products of the group before.

// With few rows, and if scales have 16 columns, the VNNI kernels are faster, so they do the work and x is packed for
// them.
static int64_t Int8TileRows(int64_t num_rows, const CodeSums& code_sums) {
  constexpr int32_t kZeroOfBytes = 128;  // the zero point of eight-bit codes, which the VNNI kernels need not unpack
  int64_t min_rows = 2 * kTileRows + 1;
  if (code_sums.columns == 16) return kTileRows;
  if (code_sums.columns == kRowColumns) min_rows = 8;
  if (code_sums.columns == kScaleColumns) min_rows = 24;
  if (code_sums.columns == 32 && code_sums.zero == kZeroOfBytes) min_rows = 32;
  return num_rows < min_rows ? kTileRows : kAmxTileRows;
}

inline constexpr int64_t kGroupsPerBlock = 2;  // with more, codes and products would not stay in L1

// kColumns: columns per scale of the weight. Scales: see impl/tiles/quant_scales.inl
template <typename Unpack, int kColumns, typename Scales>
class QuantPasses {
 public:
  // units_per_dot: units of a row that one instruction multiplies
  QuantPasses(const Unpack& unpack, const PackedQuantView& w, const PackedActivationsView& x, const TileOutput& output,
              int64_t units_per_dot)
      : unpack_(unpack), w_(w), x_(x), output_(output, x.num_rows), units_per_dot_(units_per_dot) {}

  int64_t tiles_per_group() const { return TilesPerGroup(x_.num_units, 2); }

  void Run(const TileGroup& tiles, int64_t panel, int64_t panel_end) const {
    for (; panel + 2 <= panel_end; panel += 2) RunPanels<2>(tiles, panel);
    if (panel < panel_end) RunPanels<1>(tiles, panel);
  }

 private:
  static constexpr bool kOneScale = kColumns == kScaleColumns;
  // Two tiles share the loads of the codes. With more scales, storing the products takes longer than the loads.
  static constexpr int kTilesPerPass = kOneScale ? 2 : 1;
  static constexpr int64_t kBlocksPerGroup = kScaleColumns / kBlockColumns;
  static constexpr int64_t kUnitsPerGroup = kBlocksPerGroup * kUnitsPerBlock;
  static constexpr int64_t kScalesPerGroup = kScaleColumns / kColumns, kUnitsPerScale = kColumns / 4;
  static constexpr int64_t kScalesPerBlock = kScalesPerGroup * kGroupsPerBlock;

  // A block of panels, unpacked.
  template <int kPanels>
  struct alignas(64) WeightBlock {
    uint8_t codes[kPanels][kGroupsPerBlock * kBlocksPerGroup * kBlockBytes];
    float scales[kPanels][kScalesPerBlock][kPanelRows];
    float minimums[kPanels][Scales::kHasMinimums ? kScalesPerBlock : 1][kPanelRows];
  };
  template <int kPanels>
  struct Block {
    const WeightBlock<kPanels>& weights;
    int64_t begin, end, num_groups;  // in groups
    int64_t panel;
  };
  // The products of a group.
  template <int kTiles, int kPanels>
  struct Dots {
    TileSums<kPanels, int32_t> of_scale[kScalesPerGroup][kTiles];
  };
  template <int kTiles>
  struct Item {
    PassInput<kTiles> x;
    int64_t tile;  // of the group of tiles
    int64_t group;
  };

  static Vec FloatDots(const int32_t* dots) { return IntSums{_mm512_load_si512(dots)}.ToFloat(); }

  // What the minimums of rows need in addition.
  struct MinimumTerms {
    const float* minimums;  // [num_scales, kPanelRows]
    const float* x_sums;    // of the first scale
    int64_t stride;         // of x_sums between scales
  };

  // Scales the products of kRows rows of a tile and one panel, and adds them to `from`. dots: of the first scale.
  // w_scales: [num_scales, kPanelRows]. num_scales: int64_t, or Int<kScalesPerGroup> for a whole group
  template <int kRows, int64_t kDotsStride, typename NumScales>
  [[gnu::always_inline]] static void Fold(const int32_t* dots, const float* w_scales, NumScales num_scales,
                                          const float* x_scales, const float* from, float* to,
                                          const MinimumTerms* terms) {
    if constexpr (kOneScale) {
      const Vec w_scale = Vec::Load(w_scales);
      Vec sum[kRows];
      Unroll<kRows>([&](auto r) { sum[r] = Vec::Load(from + r * kPanelRows); });
      Unroll<kRows>([&](auto r) {
        Vec product = Vec::Mul(FloatDots(dots + r * kPanelRows), w_scale);
        if constexpr (Scales::kHasMinimums) {
          product = Vec::Fma(Vec::Set1(terms->x_sums[r]), Vec::Load(terms->minimums), product);
        }
        sum[r] = Vec::Fma(product, Vec::Set1(x_scales[r]), sum[r]);
      });
      Unroll<kRows>([&](auto r) { sum[r].Store(to + r * kPanelRows); });
      return;
    }
    // With Unroll, g++ would keep these sums in memory.
    constexpr int kMaxRows = 8;
    Vec group[kMaxRows];
#pragma GCC unroll 8
    for (int r = 0; r < kMaxRows; ++r) group[r] = Vec::Zero();
    const auto add = [&](int64_t scale) __attribute__((always_inline)) {
      const Vec w_scale = Vec::Load(w_scales + scale * kPanelRows);
#pragma GCC unroll 8
      for (int r = 0; r < kMaxRows; ++r) {
        const int32_t* const scale_dots = dots + scale * kDotsStride + r * kPanelRows;
        if (r < kRows) group[r] = Vec::Fma(FloatDots(scale_dots), w_scale, group[r]);
      }
      if constexpr (Scales::kHasMinimums) {
        const Vec minimum = Vec::Load(terms->minimums + scale * kPanelRows);
        const float* const x_sums = terms->x_sums + scale * terms->stride;
#pragma GCC unroll 8
        for (int r = 0; r < kMaxRows; ++r) {
          if (r < kRows) group[r] = Vec::Fma(Vec::Set1(x_sums[r]), minimum, group[r]);
        }
      }
    };
    if constexpr (std::is_same_v<NumScales, int64_t>) {
      for (int64_t scale = 0; scale < num_scales; ++scale) add(scale);
    } else {
      static_assert(num_scales == 4);
      add(0);
      add(1);
      add(2);
      add(3);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kMaxRows; ++r) {
      if (r >= kRows) break;
      const Vec sum = Vec::Load(from + r * kPanelRows);
      Vec::Fma(group[r], Vec::Set1(x_scales[r]), sum).Store(to + r * kPanelRows);
    }
  }
  template <int kRows, int64_t kDotsStride>
  [[gnu::noinline]] static void FoldOutOfLine(const int32_t* dots, const float* w_scales, int64_t num_scales,
                                              const float* x_scales, const float* from, float* to,
                                              const MinimumTerms* terms) {
    Fold<kRows, kDotsStride>(dots, w_scales, num_scales, x_scales, from, to, terms);
  }

  // The scaling of a group's products, in parts of at most eight rows of one tile and panel.
  template <int kTiles, int kPanels>
  struct Folding {
    static constexpr int kParts = kTiles * kPanels * 2, kRows = 8;
    int part = kParts;  // the next
    bool is_first;      // there are no sums yet
    const Dots<kTiles, kPanels>* dots;
    const WeightBlock<kPanels>* weights;
    TileSums<kPanels, float>* sums;
    int64_t scale, num_scales;  // in `weights`
    int64_t num_rows[kTiles];
    const float* x_scales[kTiles];
    const float* x_sums[kTiles];

    [[gnu::always_inline]] void Next() {
      if (part == kParts) return;
      const int t = part / (2 * kPanels), p = part / 2 % kPanels, row = part % 2 * kRows;
      ++part;
      FoldRows(t, p, row);
    }
    void Finish() {
      while (part < kParts) Next();
    }
    // Like Next, but faster for a whole group and a part with all rows. REQUIRES: kPart is the next part, or all parts
    // are done; a single tile
    template <int kPart>
    [[gnu::always_inline]] void Next() {
      if (kPart >= kParts || part == kParts) return;
      constexpr int kPanel = kPart / 2 % kPanels, kRow = kPart % 2 * kRows;
      if (num_scales < kScalesPerGroup || num_rows[0] < kRow + kRows) return Next();
      ++part;
      FoldAt<kRows>(0, kPanel, kRow, Int<kScalesPerGroup>());
    }

   private:
    void FoldRows(int t, int p, int row) const {
      int64_t left = num_rows[t] - row;
      if (left >= kRows) return FoldAt<kRows>(t, p, row, num_scales);
      if (left <= 0) return;
      if ((left & 4) != 0) {
        FoldAt<4>(t, p, row, num_scales);
        row += 4;
      }
      if ((left & 2) != 0) {
        FoldAt<2>(t, p, row, num_scales);
        row += 2;
      }
      if ((left & 1) != 0) FoldAt<1>(t, p, row, num_scales);
    }
    template <int kCount, typename NumScales>
    [[gnu::always_inline]] void FoldAt(int t, int p, int row, NumScales scales) const {
      alignas(64) static constexpr float kZeros[kRows * kPanelRows] = {};
      constexpr int64_t kDotsStride = static_cast<int64_t>(sizeof(dots->of_scale[0])) / 4;
      MinimumTerms terms;
      if constexpr (Scales::kHasMinimums) terms = {weights->minimums[p][scale], x_sums[t] + row, num_rows[t]};
      const int32_t* const first = dots->of_scale[0][t].values[p][row];
      const float* const w_scales = weights->scales[p][scale];
      float* const to = sums[t].values[p][row];
      const float* const from = is_first ? kZeros : to;
      if constexpr (std::is_same_v<NumScales, int64_t>) {
        FoldOutOfLine<kCount, kDotsStride>(first, w_scales, scales, x_scales[t] + row, from, to, &terms);
      } else {
        Fold<kCount, kDotsStride>(first, w_scales, scales, x_scales[t] + row, from, to, &terms);
      }
    }
  };

  template <int kPanels>
  void RunPanels(const TileGroup& tiles, int64_t panel) const {
    WeightBlock<kPanels> weights;
    TileSums<kPanels, float> sums[kMaxGroupTiles];
    const int64_t num_blocks = w_.num_blocks(), num_groups = (num_blocks + kBlocksPerGroup - 1) / kBlocksPerGroup;
    const int64_t panel_bytes = num_blocks * w_.block_bytes();
    const int64_t group_bytes = kBlocksPerGroup * w_.block_bytes();
    const int64_t num_passes = (tiles.count() + kTilesPerPass - 1) / kTilesPerPass;
    const int64_t whole = tiles.count() / kTilesPerPass * kTilesPerPass;
    if (num_groups == 0) return StoreZeros(tiles, panel, sums);
    for (int64_t group = 0; group < num_groups; group += kGroupsPerBlock) {
      const int64_t end = group + kGroupsPerBlock < num_groups ? group + kGroupsPerBlock : num_groups;
      UnpackBlock(panel, group, end, weights);
      // The next block may be in the next panels.
      const uint8_t* next[kPanels];
      for (int p = 0; p < kPanels; ++p) {
        next[p] = w_.codes + (panel + p) * panel_bytes + (end < num_groups ? end * group_bytes : kPanels * panel_bytes);
      }
      BlockPrefetch<kPanels> prefetch(next, kGroupsPerBlock * group_bytes, num_passes * (end - group));
      const Block<kPanels> block{weights, group, end, num_groups, panel};
      RunBlock<kTilesPerPass, kPanels>(tiles, 0, whole, block, prefetch, sums);
      if constexpr (kTilesPerPass > 1) RunBlock<1, kPanels>(tiles, whole, tiles.count(), block, prefetch, sums);
    }
  }

  template <int kPanels>
  void StoreZeros(const TileGroup& tiles, int64_t panel, TileSums<kPanels, float>* sums) const {
    sums[0] = {};
    for (int64_t tile = 0; tile < tiles.count(); ++tile) {
      output_.Store(sums[0], tiles.begins[tile], tiles.begins[tile + 1] - tiles.begins[tile], panel * kPanelRows);
    }
  }

  template <int kPanels>
  void UnpackBlock(int64_t panel, int64_t group, int64_t end, WeightBlock<kPanels>& to) const {
    const int64_t num_blocks = w_.num_blocks(), block_bytes = w_.block_bytes(), num_scales = w_.num_scales();
    const int64_t begin = group * kBlocksPerGroup;
    const int64_t count = end * kBlocksPerGroup < num_blocks ? (end - group) * kBlocksPerGroup : num_blocks - begin;
    const int64_t first_scale = group * kScalesPerGroup;
    const int64_t scales_left = num_scales - first_scale;
    const int64_t scale_count = scales_left < kScalesPerBlock ? scales_left : kScalesPerBlock;
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* const from = w_.codes + ((panel + p) * num_blocks + begin) * block_bytes;
      for (int64_t i = 0; i < count; ++i) unpack_(from + i * block_bytes, to.codes[p] + i * kBlockBytes);
      Scales scales;
      scales.Start(w_, panel + p);
      for (int64_t i = 0; i < scale_count; ++i) {
        scales.Scale(first_scale + i).Store(to.scales[p][i]);
        if constexpr (Scales::kHasMinimums) scales.Minimum(first_scale + i).Store(to.minimums[p][i]);
      }
      scales.template Prefetch<kScalesPerBlock>(end * kScalesPerGroup < num_scales ? first_scale + kScalesPerBlock
                                                                                   : kPanels * num_scales);
    }
  }

  // Multiplies tiles [begin, end) of the group, a multiple of kTiles.
  template <int kTiles, int kPanels>
  void RunBlock(const TileGroup& tiles, int64_t begin, int64_t end, const Block<kPanels>& block,
                BlockPrefetch<kPanels>& prefetch, TileSums<kPanels, float>* sums) const {
    if (begin == end) return;
    Dots<kTiles, kPanels> dots[2];
    Item<kTiles> item{PassInput<kTiles>(x_, tiles, begin), begin, block.begin}, before{item.x, begin, block.num_groups};
    Folding<kTiles, kPanels> folding;                 // of the item before
    TileSums<kPanels, int32_t>* last_dots = nullptr;  // its last products, if they are still in registers
    const auto store_last_dots = [&] {
      if constexpr (!kOneScale) {
        if (last_dots != nullptr) StoreTileSums<1>(*last_dots);
      }
      last_dots = nullptr;
    };
    for (int parity = 0; item.tile < end; parity ^= 1) {
      if (!kOneScale && ScalesOf(item.group) == kScalesPerGroup) {
        if constexpr (!kOneScale) MultiplyWholeGroup(item, block, dots[parity], folding, last_dots);
      } else {
        store_last_dots();
        Multiply(item, block, dots[parity], folding);
      }
      folding.Finish();
      StoreIfLast(before, block, sums);
      prefetch.Step();
      folding = FoldingOf(item, block, dots[parity], sums + item.tile);
      before = item;
      if (++item.group < block.end) continue;
      item.group = block.begin;
      item.tile += kTiles;
      if (item.tile < end) item.x = PassInput<kTiles>(x_, tiles, item.tile);
    }
    store_last_dots();
    folding.Finish();
    StoreIfLast(before, block, sums);
  }

  // Stores the results of the item's tiles if its group is the last.
  template <int kTiles, int kPanels>
  [[gnu::always_inline]] void StoreIfLast(const Item<kTiles>& item, const Block<kPanels>& block,
                                          const TileSums<kPanels, float>* sums) const {
    if (item.group + 1 != block.num_groups) return;
    for (int t = 0; t < kTiles; ++t) {
      output_.Store(sums[item.tile + t], item.x.begin[t], item.x.num_rows[t], block.panel * kPanelRows);
    }
  }

  // Like Multiply for a whole group and one tile, but stores the products of a scale after the instructions of the next
  // scale. A store right after its product would wait for the result and delay the instructions behind it.
  template <int kPanels>
  [[gnu::always_inline]] void MultiplyWholeGroup(const Item<1>& item, const Block<kPanels>& block,
                                                 Dots<1, kPanels>& dots, Folding<1, kPanels>& folding,
                                                 TileSums<kPanels, int32_t>*& last_dots) const {
    const int64_t num_rows = item.x.num_rows[0];
    const uint32_t* const x = item.x.units[0] + item.group * kUnitsPerGroup * num_rows;
    const int64_t codes = (item.group - block.begin) * kUnitsPerGroup * kUnitRowBytes;
    Unroll<kScalesPerGroup>([&](auto scale) {
      constexpr int kSet = scale % 2;  // of registers
      constexpr int kInChunk = scale * kUnitsPerScale % kChunkUnits;
      LoadX<false, kSet>(x + (scale * kUnitsPerScale - kInChunk) * num_rows + kInChunk, kChunkUnits * kUnitBytes);
      Unroll<kPanels>([&](auto p) {
        Registers::template Load<kWRegister<p>>(block.weights.codes[p] + codes + scale * kUnitsPerScale * kUnitRowBytes,
                                                kUnitRowBytes);
        Registers::template SetZero<kSumRegister<kSet, p>>();
      });
      Unroll<kPanels>(
          [&](auto p) { Registers::template AddInt8Dots<kSumRegister<kSet, p>, kXRegister<kSet>, kWRegister<p>>(); });
      if (last_dots != nullptr) StoreTileSums<1 - kSet>(*last_dots);
      last_dots = &dots.of_scale[scale][0];
      if constexpr (scale > 0) folding.template Next<scale - 1>();
    });
    folding.template Next<kScalesPerGroup - 1>();
  }

  int64_t ScalesOf(int64_t group) const {
    const int64_t left = num_scales_ - group * kScalesPerGroup;
    return left < kScalesPerGroup ? left : kScalesPerGroup;
  }

  // Multiplies the columns of a group. Meanwhile, scales the products of the group before.
  template <int kTiles, int kPanels>
  [[gnu::always_inline]] void Multiply(const Item<kTiles>& item, const Block<kPanels>& block,
                                       Dots<kTiles, kPanels>& dots, Folding<kTiles, kPanels>& folding) const {
    const int64_t num_scales = ScalesOf(item.group), num_units = x_.num_units;
    const uint8_t* codes[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      codes[p] = block.weights.codes[p] + (item.group - block.begin) * kUnitsPerGroup * kUnitRowBytes;
    }
    int64_t unit = item.group * kUnitsPerGroup;
    for (int64_t scale = 0; scale < num_scales; ++scale) {
      SetSumsToZero<kTiles, kPanels>();
      for (const int64_t end = unit + kUnitsPerScale < num_units ? unit + kUnitsPerScale : num_units; unit < end;
           unit += units_per_dot_) {
        item.x.template LoadAt<kOneScale>(unit);
        Unroll<kPanels>([&](auto p) {
          Registers::template Load<kWRegister<p>>(codes[p], kUnitRowBytes);
          codes[p] += units_per_dot_ * kUnitRowBytes;
        });
        Unroll<kTiles>([&](auto t) {
          Unroll<kPanels>([&](auto p) {
            Registers::template AddInt8Dots<kSumRegister<t, p>, kXRegister<t>, kWRegister<p>>();
            if (kOneScale || p == 0) folding.Next();
          });
        });
      }
      StoreSums<kTiles, kPanels>(dots.of_scale[scale]);
    }
  }

  template <int kTiles, int kPanels>
  Folding<kTiles, kPanels> FoldingOf(const Item<kTiles>& item, const Block<kPanels>& block,
                                     const Dots<kTiles, kPanels>& dots, TileSums<kPanels, float>* sums) const {
    const int64_t block_scale = (item.group - block.begin) * kScalesPerGroup;
    Folding<kTiles, kPanels> folding;
    folding.part = 0;
    folding.is_first = item.group == 0;
    folding.dots = &dots;
    folding.sums = sums;
    folding.weights = &block.weights;
    folding.scale = block_scale;
    folding.num_scales = ScalesOf(item.group);
    for (int t = 0; t < kTiles; ++t) {
      const int64_t num_rows = item.x.num_rows[t], begin = item.x.begin[t];
      folding.num_rows[t] = num_rows;
      folding.x_scales[t] = x_.scales + begin * tile_scales_ + item.group * num_rows;
      if constexpr (Scales::kHasMinimums) {
        folding.x_sums[t] = x_.sums + begin * tile_offsets_ + item.group * kScalesPerGroup * num_rows;
      }
    }
    return folding;
  }

  Unpack unpack_;
  PackedQuantView w_;
  PackedActivationsView x_;
  OutputRows output_;
  int64_t units_per_dot_;
  int64_t num_scales_ = (w_.num_columns + kColumns - 1) / kColumns;
  int64_t tile_scales_ = x_.num_scales(), tile_offsets_ = x_.num_offsets();  // per row
};

static void LinearQuant(const PackedActivationsView& x, const PackedQuantView& w, const float* bias, float* y,
                        int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  if (x.tile_rows == kTileRows) {
    return kAvx512VnniPrefetchLinearQuant(x, w, bias, y, y_stride, panel_begin, panel_end);
  }
  const TileOutput output{bias, y, y_stride, w.num_rows};
  // Without columns there are no scales, which the passes below allow.
  if (w.scale_columns > kScaleColumns && w.num_columns > 0) {
    return LinearRowScales(x, w, output, panel_begin, panel_end);
  }
  const SignedCodes codes(w.zero);
  const auto run = [&](auto unpack, auto columns, auto scales) {
    // 64 columns per instruction if they share a scale.
    const bool is_wide = columns == kScaleColumns && w.num_blocks() % 2 == 0;
    const int64_t units_per_dot = is_wide ? kChunkUnits : kUnitsPerBlock;
    RunAllPasses(QuantPasses<decltype(unpack), columns, decltype(scales)>(unpack, w, x, output, units_per_dot), x,
                 units_per_dot, panel_begin, panel_end);
  };
  const auto by_32 = [&](auto unpack) {
    if (w.has_minimums) return run(unpack, Int<32>(), Float16Scales<32, true>());
    run(unpack, Int<32>(), Float16Scales<32, false>());
  };
  constexpr int kWide = static_cast<int>(kScaleColumns);
  const bool has_supers = w.supers != nullptr;
  if (w.levels != nullptr && has_supers) {
    return run(UnpackLevels{codes, CodeLevels(w.levels)}, Int<32>(), SuperScales<32, false>());
  }
  if (w.levels != nullptr) {
    return run(UnpackLevels{codes, CodeLevels(w.levels)}, Int<32>(), Float16Scales<32, false>());
  }
  if (w.bits == 4 && has_supers) return run(UnpackFourBits{codes}, Int<32>(), SuperScales<32, true>());
  if (w.bits == 4 && w.scale_columns == kScaleColumns) {
    if (w.has_minimums) return run(UnpackFourBits{codes}, Int<kWide>(), Float16Scales<kWide, true>());
    return run(UnpackFourBits{codes}, Int<kWide>(), Float16Scales<kWide, false>());
  }
  if (w.bits == 4) return by_32(UnpackFourBits{codes});
  if (w.bits == 5 && has_supers) return run(UnpackFiveBits{codes}, Int<32>(), SuperScales<32, true>());
  if (w.bits == 5) return by_32(UnpackFiveBits{codes});
  if (w.scale_columns == 32) return by_32(UnpackBytes{codes});
  run(UnpackBytes{codes}, Int<kWide>(), Float16Scales<kWide, false>());
}

static void PackInt8Rows(const float* x, int64_t x_stride, const PackedActivationsView& to, int64_t tile) {
  if (to.tile_rows == kTileRows) return kAvx512Bf16TileKernels.pack_int8(x, x_stride, to, tile);
  PackInt8<Chunks>(x, x_stride, to, tile);
}
