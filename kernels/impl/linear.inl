// Multiplies rows of x by panels of a packed weight. Included inside an instruction set's namespace.

// Load returns column k + kOffset of a panel's rows. k is a multiple of kStep.
struct WeightFloat32 {
  using Element = float;
  static constexpr int kStep = 1;
  template <int kOffset>
  static Vec Load(const float* panel, int64_t k) {
    return Vec::Load(panel + k * kPanelRows);
  }
};
struct WeightBFloat16 {
  using Element = uint16_t;
  static constexpr int kStep = 2;
  template <int kOffset>
  static Vec Load(const uint16_t* panel, int64_t k) {
    return Vec::LoadBFloat16OfPairs<kOffset>(panel + k * kPanelRows);
  }
};
struct WeightFloat16 {
  using Element = uint16_t;
  static constexpr int kStep = 1;
  template <int kOffset>
  static Vec Load(const uint16_t* panel, int64_t k) {
    return Vec::LoadFloat16(panel + k * kPanelRows);
  }
};

struct LinearArgs {
  const float* x;
  int64_t x_stride;
  const void* weight;
  int64_t num_rows_w;
  int64_t num_columns;
  int64_t stored_columns;
  const float* bias;
  float* y;
  int64_t y_stride;
};

// With more than kRowTile rows, columns are processed in blocks, so that a group of panels stays in L2 while all rows
// pass over it. y holds the partial sums in float32, like the accumulators, so results are the same with and without
// blocks.
inline constexpr int64_t kColumnBlock = 1024;  // must be even, because bfloat16 columns are stored in pairs

// Prefetch distance, in bytes, into the packed weight. Near the end of a panel, it reaches into the following panels.
// For a single row, the weight is not prefetched: the kernel is then bound by memory bandwidth, which the hardware
// prefetcher uses best.
inline constexpr int64_t kWeightPrefetchBytes = 16 << 10;
// The lines of y are prefetched this many columns before the end of a column block.
inline constexpr int64_t kOutputPrefetchColumns = 64;

template <typename W, int kOffset, int kRows, int kPanels>
static inline void AddColumn(const typename W::Element* const (&w)[kPanels], const float* const (&x)[kRows], int64_t k,
                             Vec (&acc)[kRows][kPanels]) {
  Vec wv[kPanels];
  for (int p = 0; p < kPanels; ++p) wv[p] = W::template Load<kOffset>(w[p], k);
  for (int r = 0; r < kRows; ++r) {
    const Vec xv = Vec::Set1(x[r][k + kOffset]);
    for (int p = 0; p < kPanels; ++p) acc[r][p] = Vec::Fma(xv, wv[p], acc[r][p]);
  }
}

// Adds columns from k on, in steps of kStep, while a whole step is left before k_end. Advances k.
template <typename W, int kRows, int kPanels>
static inline void AddColumns(const typename W::Element* const (&w)[kPanels], const float* const (&x)[kRows],
                              int64_t& k, int64_t k_end, Vec (&acc)[kRows][kPanels]) {
  for (; k + W::kStep <= k_end; k += W::kStep) {
    if constexpr (kRows > 1) {
      for (int p = 0; p < kPanels; ++p) {
        __builtin_prefetch(reinterpret_cast<const char*>(w[p] + k * kPanelRows) + kWeightPrefetchBytes, 0, 2);
      }
    }
    AddColumn<W, 0, kRows, kPanels>(w, x, k, acc);
    if constexpr (W::kStep == 2) AddColumn<W, 1, kRows, kPanels>(w, x, k, acc);
  }
}

template <typename W, int kRows, int kPanels>
static inline void LinearTile(const LinearArgs& call, int64_t row, int64_t panel, int64_t k_begin, int64_t k_end) {
  const auto* base = static_cast<const typename W::Element*>(call.weight);
  const typename W::Element* w[kPanels];
  for (int p = 0; p < kPanels; ++p) w[p] = base + (panel + p) * call.stored_columns * kPanelRows;
  const float* x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = call.x + (row + r) * call.x_stride;

  Vec acc[kRows][kPanels];
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) {
      if (k_begin == 0) {
        acc[r][p] = Vec::Zero();
        continue;
      }
      const int64_t n = (panel + p) * kPanelRows;
      const int64_t left = call.num_rows_w - n;
      const float* y = call.y + (row + r) * call.y_stride + n;
      acc[r][p] = left >= kPanelRows ? Vec::Load(y) : Vec::LoadPartial(y, static_cast<int>(left));
    }
  }
  int64_t k = k_begin;
  AddColumns<W, kRows, kPanels>(w, x, k, k_end - kOutputPrefetchColumns, acc);
  for (int r = 0; r < kRows; ++r) {
    float* y = call.y + (row + r) * call.y_stride;
    for (int p = 0; p < kPanels; ++p) __builtin_prefetch(y + (panel + p) * kPanelRows, 1);
  }
  AddColumns<W, kRows, kPanels>(w, x, k, k_end, acc);
  if (k < k_end) AddColumn<W, 0, kRows, kPanels>(w, x, k, acc);
  const bool last = k_end == call.num_columns;
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) {
      const int64_t n = (panel + p) * kPanelRows;
      const int64_t left = call.num_rows_w - n;
      const int lanes = left >= kPanelRows ? static_cast<int>(kPanelRows) : static_cast<int>(left);
      Vec sum = acc[r][p];
      if (last && call.bias != nullptr) sum = Vec::Add(sum, Vec::LoadPartial(call.bias + n, lanes));
      float* y = call.y + (row + r) * call.y_stride + n;
      if (lanes == kPanelRows) {
        sum.Store(y);
      } else {
        sum.StorePartial(y, lanes);
      }
    }
  }
}

template <typename W, int kRows, int kPanels>
static inline void LinearRows(const LinearArgs& call, int64_t rows_left, int64_t row, int64_t panel, int64_t k_begin,
                              int64_t k_end) {
  if constexpr (kRows > 0) {
    if (rows_left >= kRows) {
      LinearTile<W, kRows, kPanels>(call, row, panel, k_begin, k_end);
    } else {
      LinearRows<W, kRows - 1, kPanels>(call, rows_left, row, panel, k_begin, k_end);
    }
  }
}

template <typename W, int kPanels>
static void LinearPanels(const LinearArgs& call, int64_t num_rows, int64_t panel, int64_t k_begin, int64_t k_end) {
  constexpr int kRows = W::kStep == 2 ? kRowTileOfPairs : kRowTile;
  for (int64_t row = 0; row < num_rows; row += kRows) {
    LinearRows<W, kRows, kPanels>(call, num_rows - row, row, panel, k_begin, k_end);
  }
}

template <typename W>
static void LinearTyped(const LinearArgs& call, int64_t num_rows, int64_t panel_begin, int64_t panel_end) {
  if (num_rows == 1) {
    int64_t panel = panel_begin;
    for (; panel + kPanelTileOneRow <= panel_end; panel += kPanelTileOneRow) {
      LinearTile<W, 1, kPanelTileOneRow>(call, 0, panel, 0, call.num_columns);
    }
    for (; panel < panel_end; ++panel) LinearTile<W, 1, 1>(call, 0, panel, 0, call.num_columns);
    return;
  }
  int64_t k_begin = 0;
  do {
    int64_t k_end = k_begin + kColumnBlock;
    if (num_rows <= kRowTile || k_end > call.num_columns) k_end = call.num_columns;
    int64_t panel = panel_begin;
    for (; panel + kPanelTile <= panel_end; panel += kPanelTile) {
      LinearPanels<W, kPanelTile>(call, num_rows, panel, k_begin, k_end);
    }
    for (; panel < panel_end; ++panel) LinearPanels<W, 1>(call, num_rows, panel, k_begin, k_end);
    k_begin = k_end;
  } while (k_begin < call.num_columns);
}

static void Linear(const float* x, int64_t x_stride, int64_t num_rows, const PackedMatrixView& w, const float* bias,
                   float* y, int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  const LinearArgs call{x, x_stride, w.data, w.num_rows, w.num_columns, w.stored_columns(), bias, y, y_stride};
  switch (w.dtype) {
    case DType::kFloat32:
      return LinearTyped<WeightFloat32>(call, num_rows, panel_begin, panel_end);
    case DType::kBFloat16:
      return LinearTyped<WeightBFloat16>(call, num_rows, panel_begin, panel_end);
    case DType::kFloat16:
      return LinearTyped<WeightFloat16>(call, num_rows, panel_begin, panel_end);
  }
}
