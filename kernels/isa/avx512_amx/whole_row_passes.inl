// Multiplies tiles by panels if all products of a row can be added before they are scaled. The tile registers then hold
// the sums of whole rows. Included inside a namespace with `Registers`.

// Weights: see BFloat16Panels in linear_bfloat16.inl.
template <typename Weights>
class WholeRowPasses {
 public:
  WholeRowPasses(const Weights& w, const PackedActivationsView& x, const TileOutput& output)
      : w_(w), x_(x), output_(output, x.num_rows), panels_stay_in_l1_(x.num_units <= kMaxUnitsInL1) {}

  // Several panels at once, so that consecutive lines of y are written one after the other.
  int64_t panels_at_once() const { return panels_stay_in_l1_ ? 2 : 4; }

  void Run(const TileGroup& tiles, int64_t panel_begin, int64_t panel_end) const {
    const int64_t num_passes = panels_stay_in_l1_ ? tiles.count() : (tiles.count() + 1) / 2;
    const int64_t num_chunks = x_.num_units / kChunkUnits;
    const int64_t panel_bytes = x_.num_units * kUnitRowBytes, num_panels = panel_end - panel_begin;
    const uint8_t* const next[1] = {w_.panels() + panel_end * panel_bytes};
    BlockPrefetch<1> prefetch(next, num_panels * panel_bytes, num_passes * num_chunks * ((num_panels + 1) / 2) + 1);
    int64_t tile = 0;
    for (; tile + 2 <= tiles.count() && !panels_stay_in_l1_; tile += 2) {
      RunPanels(PassInput<2>(x_, tiles, tile), panel_begin, panel_end, prefetch);
    }
    for (; tile < tiles.count(); ++tile) RunPanels(PassInput<1>(x_, tiles, tile), panel_begin, panel_end, prefetch);
  }

 private:
  // Two panels of this many units and one tile fit in L1, 48 KiB. Then a pass has a single tile, and the panels stay in
  // L1 from tile to tile. With two tiles per pass, panels as well as tiles would come from L2.
  static constexpr int64_t kMaxUnitsInL1 = 224;

  template <int kTiles>
  [[gnu::always_inline]] void RunPanels(const PassInput<kTiles>& pass, int64_t panel, int64_t panel_end,
                                        BlockPrefetch<1>& prefetch) const {
    for (; panel + 2 <= panel_end; panel += 2) {
      RunPass<2>(pass, Panels<2>(w_, x_.num_units, panel), prefetch);
    }
    if (panel < panel_end) RunPass<1>(pass, Panels<1>(w_, x_.num_units, panel), prefetch);
  }

  template <int kPanels>
  struct Panels {
    const uint8_t* units[kPanels];
    int64_t first_row;  // of w

    Panels(const Weights& w, int64_t num_units, int64_t panel) : first_row(panel * kPanelRows) {
      for (int p = 0; p < kPanels; ++p) units[p] = w.panels() + (panel + p) * num_units * kUnitRowBytes;
    }
  };

  template <int kPanels, int kTiles>
  [[gnu::always_inline]] void RunPass(const PassInput<kTiles>& pass, const Panels<kPanels>& panels,
                                      BlockPrefetch<1>& prefetch) const {
    SetSumsToZero<kTiles, kPanels>();
    // Local variables, because the compiler reads all others from memory again after each Load.
    const uint32_t* x[kTiles];
    int64_t chunk_units[kTiles];
    const uint8_t* w[kPanels];
    for (int t = 0; t < kTiles; ++t) {
      chunk_units[t] = pass.num_rows[t] * kChunkUnits;
      x[t] = pass.units[t];
    }
    for (int p = 0; p < kPanels; ++p) w[p] = panels.units[p];
    const int64_t num_units = pass.num_units, whole = num_units / kChunkUnits * kChunkUnits;
    OutputPrefetch<kTiles> y_lines(output_, pass, panels.first_row, num_units / kChunkUnits);
    for (int64_t unit = 0; unit < whole; unit += kChunkUnits) {
      Unroll<kTiles>([&](auto t) {
        Registers::template Load<kXRegister<t>>(x[t], kChunkUnits * kUnitBytes);
        x[t] += chunk_units[t];
      });
      Unroll<kPanels>([&](auto p) {
        Registers::template Load<kWRegister<p>>(w[p], kUnitRowBytes);
        w[p] += kChunkUnits * kUnitRowBytes;
      });
      prefetch.Step();
      y_lines.Step();
      AddDots<kTiles, kPanels>();
    }
    if (whole < num_units) AddLastUnits(pass, panels.units, whole);
    TileSums<kPanels, typename Weights::Sum> sums[kTiles];
    StoreSums<kTiles>(sums);
    for (int t = 0; t < kTiles; ++t) {
      output_.Store(w_.Results(sums[t], pass.begin[t], pass.num_rows[t], panels.first_row), pass.begin[t],
                    pass.num_rows[t], panels.first_row);
    }
  }

  template <int kTiles, int kPanels>
  static void AddDots() {
    Unroll<kTiles>([&](auto t) {
      Unroll<kPanels>([&](auto p) { Weights::template AddDots<kSumRegister<t, p>, kXRegister<t>, kWRegister<p>>(); });
    });
  }
  // Adds the units of the last chunk, fewer than kChunkUnits, from copies with zeros behind them.
  template <int kTiles, int kPanels>
  static void AddLastUnits(const PassInput<kTiles>& pass, const uint8_t* const (&panels)[kPanels], int64_t unit) {
    alignas(64) uint32_t units[kTiles][kAmxTileRows][kChunkUnits] = {};
    alignas(64) uint8_t last[kPanels][kChunkUnits * kUnitRowBytes] = {};
    const int64_t width = pass.num_units - unit;
    Unroll<kTiles>([&](auto t) {
      for (int64_t r = 0; r < pass.num_rows[t]; ++r) {
        __builtin_memcpy(units[t][r], pass.units[t] + unit * pass.num_rows[t] + r * width,
                         static_cast<size_t>(width * kUnitBytes));
      }
      Registers::template Load<kXRegister<t>>(units[t], sizeof(units[t][0]));
    });
    Unroll<kPanels>([&](auto p) {
      __builtin_memcpy(last[p], panels[p] + unit * kUnitRowBytes, static_cast<size_t>(width * kUnitRowBytes));
      Registers::template Load<kWRegister<p>>(last[p], kUnitRowBytes);
    });
    AddDots<kTiles, kPanels>();
  }

  Weights w_;
  PackedActivationsView x_;
  OutputRows output_;
  bool panels_stay_in_l1_;
};
