// Multiplies tiles by panels if all products of a row can be added before they are scaled. Included inside a namespace
// with `Registers`.
//
// If there are more than a few tiles, rows are divided into blocks of columns. A block of two panels stays in L1 while
// it is multiplied by all tiles of the group, and a block of the tiles stays in L2 while it is multiplied by a run of
// panels. From block to block, the sums are in memory, so that each element is still a single sum in the order of the
// columns. Results are stored row by row once a run is complete, because the lines of y are rarely in L2, and a store
// that misses L2 stops the stores and loads behind it.

// Weights: see BFloat16Panels in linear_bfloat16.inl.
template <typename Weights>
class WholeRowPasses {
 public:
  WholeRowPasses(const Weights& w, const PackedActivationsView& x, const TileOutput& output)
      : w_(w), x_(x), output_(output, x.num_rows), num_chunks_((x.num_units + kChunkUnits - 1) / kChunkUnits) {}

  int64_t tiles_per_group() const { return TilesPerGroup(x_.num_units, kMinGroupTiles); }

  void Run(const TileGroup& tiles, int64_t panel_begin, int64_t panel_end) const {
    // If all columns of the tiles stay in L2, a short run leaves more of it to them.
    const bool stays_in_l2 = tiles.count() * num_chunks_ * kRegisterBytes <= kRowGroupBytes;
    const int64_t run = stays_in_l2 ? kPanelsPerShortRun : kMaxSums / tiles.count() / 2 * 2;
    for (int64_t panel = panel_begin; panel < panel_end; panel += run) {
      const int64_t end = panel + run < panel_end ? panel + run : panel_end;
      if (tiles.count() <= kFewTiles) {
        RunPanels<false>(tiles, panel, end, 1);
      } else {
        RunPanels<true>(tiles, panel, end, num_chunks_ == 0 ? 1 : (num_chunks_ + kBlockChunks - 1) / kBlockChunks);
      }
    }
  }

 private:
  using Sum = typename Weights::Sum;
  using Sums = TileSums<2, Sum>;  // of a tile and two panels

  static constexpr int64_t kRegisterBytes = kChunkUnits * kUnitRowBytes;
  // Two panels of this many chunks take 36 of the 48 KiB of L1.
  static constexpr int64_t kBlockChunks = 18;
  // With so few tiles, panels are not read often enough for keeping them in L1.
  static constexpr int64_t kFewTiles = 4;
  // With fewer tiles in a group, the panels are read too often from L3.
  static constexpr int64_t kMinGroupTiles = 16;
  static constexpr int64_t kPanelsPerShortRun = 8;
  static constexpr int64_t kMaxSums =
      static_cast<int64_t>(kThreadScratchBytes / (kAmxTileRows * kPanelRows * sizeof(Sum)));
  static_assert(kMaxSums >= kPanelsPerShortRun * kMaxGroupTiles);

  // The chunks of a block.
  struct Block {
    int64_t begin, end;
    int64_t count() const { return end - begin; }
  };

  // Makes the compiler keep `value` in a register. Otherwise g++ computes two pointers in one vector and updates them
  // in memory in the loop below, which is 3 to 6 % slower.
  template <typename T>
  [[gnu::always_inline]] static void InRegister(T& value) {
    asm("" : "+r"(value));
  }

  template <bool kOnce>
  void RunPanels(const TileGroup& tiles, int64_t panel_begin, int64_t panel_end, int64_t num_blocks) const {
    Sums* const sums = static_cast<Sums*>(ThreadScratch());
    const int64_t num_passes = (tiles.count() + 1) / 2;
    for (int64_t i = 0; i < num_blocks; ++i) {
      const Block block{num_chunks_ * i / num_blocks, num_chunks_ * (i + 1) / num_blocks};
      Sums* to = sums;
      for (int64_t panel = panel_begin; panel < panel_end; panel += 2, to += tiles.count()) {
        // The next panels of the run, or the first ones of the next block or run.
        int64_t next = panel + 2, next_chunk = block.begin;
        if (next >= panel_end && i + 1 < num_blocks) {
          next = panel_begin;
          next_chunk = block.end;
        } else if (next >= panel_end) {
          next_chunk = 0;
        }
        const uint8_t* const next_units[2] = {PanelAt(next, next_chunk), PanelAt(next + 1, next_chunk)};
        BlockPrefetch<2> prefetch(next_units, block.count() * kRegisterBytes, num_passes * block.count() + 1);
        if (panel + 1 < panel_end) {
          RunTiles<kOnce, 2>(tiles, panel, block, prefetch, to);
        } else {
          RunTiles<kOnce, 1>(tiles, panel, block, prefetch, to);
        }
      }
    }
    for (int64_t tile = 0; tile < tiles.count(); ++tile) {
      StoreResults(tiles.begins[tile], tiles.begins[tile + 1], panel_begin, panel_end, sums + tile, tiles.count());
    }
  }

  const uint8_t* PanelAt(int64_t panel, int64_t chunk) const {
    return w_.panels() + (panel * x_.num_units + chunk * kChunkUnits) * kUnitRowBytes;
  }

  template <bool kOnce, int kPanels>
  void RunTiles(const TileGroup& tiles, int64_t panel, const Block& block, BlockPrefetch<2>& prefetch,
                Sums* sums) const {
    int64_t tile = 0;
    for (; tile + 2 <= tiles.count(); tile += 2) {
      RunPass<kOnce, kPanels>(PassInput<2>(x_, tiles, tile), panel, block, prefetch, sums + tile);
    }
    if (tile < tiles.count()) {
      RunPass<kOnce, kPanels>(PassInput<1>(x_, tiles, tile), panel, block, prefetch, sums + tile);
    }
  }

  template <bool kOnce, int kPanels, int kTiles>
  [[gnu::always_inline]] void RunPass(const PassInput<kTiles>& pass, int64_t panel, const Block& block,
                                      BlockPrefetch<2>& prefetch, Sums* sums) const {
    if (block.begin == 0) {
      SetSumsToZero<kTiles, kPanels>();
    } else {
      LoadSums<kTiles, kPanels>(sums);
    }
    const uint32_t* x[kTiles];
    int64_t chunk_units[kTiles];
    const uint8_t* w[kPanels];
    for (int t = 0; t < kTiles; ++t) {
      chunk_units[t] = pass.num_rows[t] * kChunkUnits;
      x[t] = pass.units[t] + block.begin * chunk_units[t];
      InRegister(x[t]);
      InRegister(chunk_units[t]);
    }
    for (int p = 0; p < kPanels; ++p) {
      w[p] = PanelAt(panel + p, block.begin);
      InRegister(w[p]);
    }
    const int64_t whole = x_.num_units / kChunkUnits;
    for (int64_t chunk = block.begin; chunk < block.end && chunk < whole; ++chunk) {
      Unroll<kTiles>([&](auto t) {
        LoadX<kOnce, t>(x[t], kChunkUnits * kUnitBytes);
        x[t] += chunk_units[t];
      });
      Unroll<kPanels>([&](auto p) {
        Registers::template Load<kWRegister<p>>(w[p], kUnitRowBytes);
        w[p] += kRegisterBytes;
      });
      prefetch.Step();
      AddDots<kTiles, kPanels>();
    }
    if (block.end > whole) AddLastUnits(pass, x, w);
    StoreSums<kTiles, kPanels>(sums);
  }

  template <int kTiles, int kPanels>
  static void AddDots() {
    Unroll<kTiles>([&](auto t) {
      Unroll<kPanels>([&](auto p) { Weights::template AddDots<kSumRegister<t, p>, kXRegister<t>, kWRegister<p>>(); });
    });
  }
  // Adds the units of the last chunk, fewer than kChunkUnits, from copies with zeros behind them. x, w: that chunk
  template <int kTiles, int kPanels>
  void AddLastUnits(const PassInput<kTiles>& pass, const uint32_t* const (&x)[kTiles],
                    const uint8_t* const (&w)[kPanels]) const {
    alignas(64) uint32_t units[kTiles][kAmxTileRows][kChunkUnits] = {};
    alignas(64) uint8_t last[kPanels][kRegisterBytes] = {};
    const int64_t width = x_.num_units % kChunkUnits;
    Unroll<kTiles>([&](auto t) {
      for (int64_t r = 0; r < pass.num_rows[t]; ++r) {
        __builtin_memcpy(units[t][r], x[t] + r * width, static_cast<size_t>(width * kUnitBytes));
      }
      Registers::template Load<kXRegister<t>>(units[t], sizeof(units[t][0]));
    });
    Unroll<kPanels>([&](auto p) {
      __builtin_memcpy(last[p], w[p], static_cast<size_t>(width * kUnitRowBytes));
      Registers::template Load<kWRegister<p>>(last[p], kUnitRowBytes);
    });
    AddDots<kTiles, kPanels>();
  }

  // Stores the results of rows [row, row_end), a tile, for a run of panels. sums: of its first two panels, followed by
  // those of the others, `stride` apart
  void StoreResults(int64_t row, int64_t row_end, int64_t panel_begin, int64_t panel_end, const Sums* sums,
                    int64_t stride) const {
    for (int64_t r = 0; row < row_end; ++r, ++row) {
      const Sums* from = sums;
      for (int64_t panel = panel_begin; panel < panel_end; panel += 2, from += stride) {
        for (int64_t p = 0; p < 2 && panel + p < panel_end; ++p) {
          const int64_t n = (panel + p) * kPanelRows;
          output_.StoreLine(w_.Result(from->values[p][r], row, n), row, n);
        }
      }
    }
  }

  Weights w_;
  PackedActivationsView x_;
  OutputRows output_;
  int64_t num_chunks_;
};
