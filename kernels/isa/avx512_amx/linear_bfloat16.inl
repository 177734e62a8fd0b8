// Multiplies bfloat16 tiles by bfloat16 panels with AMX. Included inside a namespace with `Registers`.

class BFloat16Panels {
 public:
  using Sum = float;  // what the registers hold

  explicit BFloat16Panels(const PackedMatrixView& w) : data_(static_cast<const uint8_t*>(w.data)) {}

  // The units of the first panel; those of the others follow.
  const uint8_t* panels() const { return data_; }
  // Adds the products of a register of x and one of the panel.
  template <int kSum, int kX, int kW>
  static void AddDots() {
    Registers::template AddBFloat16Dots<kSum, kX, kW>();
  }
  // Converts the sums of row `row` of x and a panel whose first row of w is n to results without bias.
  [[gnu::always_inline]] Vec Result(const float* sums, int64_t /*row*/, int64_t /*n*/) const { return Vec::Load(sums); }

 private:
  const uint8_t* data_;
};

static void LinearBFloat16(const PackedActivationsView& x, const PackedMatrixView& w, const float* bias, float* y,
                           int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  RunAllPasses(WholeRowPasses<BFloat16Panels>(BFloat16Panels(w), x, {bias, y, y_stride, w.num_rows}), x, kChunkUnits,
               panel_begin, panel_end);
}
