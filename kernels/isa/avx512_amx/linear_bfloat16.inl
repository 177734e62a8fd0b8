// Multiplies bfloat16 tiles by bfloat16 panels with AMX. Included inside a namespace with `Registers`.

struct BFloat16Passes {
  static constexpr int64_t kUnitsPerDot = 16;
  const PackedMatrixView& w;
  TileOutput output;
  int64_t num_units;

  template <int kPanels, int kTiles>
  void Run(const PassInput<kTiles>& x, int64_t panel) const {
    const uint8_t* panels[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      panels[p] = static_cast<const uint8_t*>(w.data) + (panel + p) * num_units * kUnitRowBytes;
    }
    SetSumsToZero<kTiles, kPanels>();
    int64_t unit = 0;
    for (; unit + kUnitsPerDot <= num_units; unit += kUnitsPerDot) {
      x.LoadAt(unit);
      LoadPanels(panels, unit * kUnitRowBytes);
      AddDots<kTiles, kPanels>();
    }
    if (unit < num_units) AddLastUnits(x, panels, unit);
    PassSums<kTiles, kPanels, float> sums;
    sums.StoreRegisters();
    for (int t = 0; t < kTiles; ++t) {
      for (int64_t r = 0; r < x.num_rows[t]; ++r) {
        for (int p = 0; p < kPanels; ++p) output.Store(x.begin[t] + r, panel + p, Vec::Load(sums.values[t][p][r]));
      }
    }
  }

 private:
  template <int kTiles, int kPanels>
  static void AddDots() {
    Unroll<kTiles>([&](auto t) {
      Unroll<kPanels>(
          [&](auto p) { Registers::template AddBFloat16Dots<kSumRegister<t, p>, kXRegister<t>, kWRegister<p>>(); });
    });
  }
  // Adds fewer than kUnitsPerDot units, from copies with zeros behind them.
  template <int kTiles, int kPanels>
  void AddLastUnits(const PassInput<kTiles>& x, const uint8_t* const (&panels)[kPanels], int64_t unit) const {
    alignas(64) uint32_t units[kTiles][kTileRows][kUnitsPerDot] = {};
    alignas(64) uint8_t last[kPanels][kUnitsPerDot * kUnitRowBytes] = {};
    const auto bytes = static_cast<size_t>((num_units - unit) * kUnitBytes);
    Unroll<kTiles>([&](auto t) {
      for (int64_t r = 0; r < x.num_rows[t]; ++r) {
        __builtin_memcpy(units[t][r], x.units[t] + r * num_units + unit, bytes);
      }
      Registers::template Load<kXRegister<t>>(units[t], sizeof(units[t][0]));
    });
    Unroll<kPanels>([&](auto p) {
      __builtin_memcpy(last[p], panels[p] + unit * kUnitRowBytes, bytes / kUnitBytes * kUnitRowBytes);
      Registers::template Load<kWRegister<p>>(last[p], kUnitRowBytes);
    });
    AddDots<kTiles, kPanels>();
  }
};

static void LinearBFloat16(const PackedActivationsView& x, const PackedMatrixView& w, const float* bias, float* y,
                           int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  RunAllPasses(BFloat16Passes{w, {bias, y, y_stride, w.num_rows}, x.num_units}, x, BFloat16Passes::kUnitsPerDot,
               panel_begin, panel_end);
}
