// Multiplies int8 tiles with one scale per row by panels of eight-bit codes with one scale per row of w, with AMX. As
// the instruction adds products exactly, the results are those of the VNNI kernels. Included inside a namespace with
// `Registers`.

// See BFloat16Panels. The codes are not converted to signed ones: the offsets of x subtract the zero point's products.
class CodePanels {
 public:
  using Sum = int32_t;

  CodePanels(const PackedQuantView& w, const PackedActivationsView& x) : w_(w), x_(x) {}

  const uint8_t* panels() const { return w_.codes; }
  template <int kSum, int kX, int kW>
  static void AddDots() {
    Registers::template AddInt8UnsignedDots<kSum, kX, kW>();
  }
  [[gnu::always_inline]] Vec Result(const int32_t* sums, int64_t row, int64_t n) const {
    const __m512i dots = _mm512_load_si512(sums), offset = _mm512_set1_epi32(x_.offsets[row]);
    const Vec w_scale = Vec::LoadFloat16(w_.scales + n);
    const Vec scaled = Vec::Mul(IntSums{_mm512_add_epi32(dots, offset)}.ToFloat(), w_scale);
    return Vec::Fma(scaled, Vec::Set1(x_.scales[row]), Vec::Zero());
  }

 private:
  PackedQuantView w_;
  PackedActivationsView x_;
};

static void LinearRowScales(const PackedActivationsView& x, const PackedQuantView& w, const TileOutput& output,
                            int64_t panel_begin, int64_t panel_end) {
  RunAllPasses(WholeRowPasses<CodePanels>(CodePanels(w, x), x, output), x, kChunkUnits, panel_begin, panel_end);
}
