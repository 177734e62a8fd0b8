// Multiplies rows of x by rows of a weight in a checkpoint format. Included inside an instruction set's namespace.
//
// Reduction order: lane i of sixteen sums columns i, i + 16, ... of a segment of kSegment columns. The lanes are added,
// and then the segments in ascending order. Both implementations below use this order. With one or a few rows of x,
// codes are multiplied as they are decoded. With more rows, codes are dequantized once for all rows, a few weight rows
// and one segment at a time, so that the floats (about 32 KiB) stay in L1 or L2.

inline constexpr int64_t kSegment = 1024;
inline constexpr int64_t kSegmentStride = kSegment + 16;  // a power of two would map all rows to the same L1 sets
inline constexpr int kDirectWeightRows = 4;               // rows of w per pass for one row of x, to hide FMA latency
inline constexpr int kUnpackedWeightRows = 8;             // rows of w that are dequantized at a time

struct QuantCall {
  const float* x;
  int64_t x_stride;
  int64_t num_rows;
  const CheckpointQuantMatrixView& w;
  const float* bias;
  float* y;
  int64_t y_stride;

  // Adds the sum of the segment [k_begin, k_end) to y[r, n]. The first segment overwrites y[r, n] instead, and the last
  // one also adds the bias.
  void Store(int64_t r, int64_t n, int64_t k_begin, int64_t k_end, Vec sum) const {
    float* to = y + r * y_stride + n;
    float value = Vec::ReduceAdd(sum);
    if (k_begin > 0) value = *to + value;
    if (k_end == w.num_columns && bias != nullptr) value = value + bias[n];
    *to = value;
  }
  int64_t SegmentEnd(int64_t k_begin) const {
    return k_begin + kSegment < w.num_columns ? k_begin + kSegment : w.num_columns;
  }
};

// Multiplies kRowsOfX rows of x by kRows rows of w.
template <typename Format, int kRows, int kRowsOfX>
static inline void Direct(const QuantCall& call, int64_t n) {
  typename Format::Row rows[kRows];
  for (int i = 0; i < kRows; ++i) rows[i] = Format::RowOf(call.w, n + i);
  int64_t k_begin = 0;
  do {
    const int64_t k_end = call.SegmentEnd(k_begin);
    Vec sums[kRows][kRowsOfX];
    for (int i = 0; i < kRows; ++i) {
      for (int r = 0; r < kRowsOfX; ++r) sums[i][r] = Vec::Zero();
    }
    for (int64_t k = k_begin; k < k_end; k += Format::kColumns) {
      const auto row = [&](auto index) __attribute__((always_inline)) {
        const int i = index;
        const float* x = call.x + k;
        // The hardware prefetcher does not recognize several interleaved rows as streams, so prefetch the next rows
        // here.
        Format::Prefetch(rows[i], k / Format::kColumns, kRows * call.w.row_bytes);
        Format::Visit(
            rows[i], k / Format::kColumns, [&](Vec w) __attribute__((always_inline)) {
              for (int r = 0; r < kRowsOfX; ++r) {
                sums[i][r] = Vec::Fma(Vec::Load(x + r * call.x_stride), w, sums[i][r]);
              }
              x += Vec::kLanes;
            });
      };
      // Unrolling keeps the accumulators in registers. The code for a block of 256 columns is too large to unroll.
      if constexpr (Format::kColumns == kQuantColumns) {
        Unroll<kRows>(row);
      } else {
        for (int i = 0; i < kRows; ++i) row(i);
      }
    }
    for (int i = 0; i < kRows; ++i) {
      for (int r = 0; r < kRowsOfX; ++r) call.Store(r, n + i, k_begin, k_end, sums[i][r]);
    }
    k_begin = k_end;
  } while (k_begin < call.w.num_columns);
}

template <typename Format, int kRowsOfX>
static void FewRowsOfX(const QuantCall& call, int64_t row_begin, int64_t row_end) {
  constexpr int kRows = kRowsOfX == 1 ? kDirectWeightRows : kDirectWeightRowsFewX;
  int64_t n = row_begin;
  for (; n + kRows <= row_end; n += kRows) Direct<Format, kRows, kRowsOfX>(call, n);
  for (; n < row_end; ++n) Direct<Format, 1, kRowsOfX>(call, n);
}

template <typename Format>
static inline void Unpack(const CheckpointQuantMatrixView& w, int64_t n, int64_t k_begin, int64_t k_end, float* out) {
  const typename Format::Row row = Format::RowOf(w, n);
  for (int64_t k = k_begin; k < k_end; k += Format::kColumns) {
    Format::Prefetch(row, k / Format::kColumns, kUnpackedWeightRows * w.row_bytes);
    Format::Visit(
        row, k / Format::kColumns, [&](Vec v) __attribute__((always_inline)) {
          v.Store(out);
          out += Vec::kLanes;
        });
  }
}

template <int kRows, int kColumns>
static inline void DotTile(const QuantCall& call, const float* unpacked, int64_t r, int64_t n, int64_t k_begin,
                           int64_t k_end) {
  const float* x = call.x + r * call.x_stride + k_begin;
  Vec sums[kRows][kColumns];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) sums[i][j] = Vec::Zero();
  }
  for (int64_t k = 0; k < k_end - k_begin; k += Vec::kLanes) {
    Vec w[kColumns];
    for (int j = 0; j < kColumns; ++j) w[j] = Vec::Load(unpacked + j * kSegmentStride + k);
    for (int i = 0; i < kRows; ++i) {
      const Vec v = Vec::Load(x + i * call.x_stride + k);
      for (int j = 0; j < kColumns; ++j) sums[i][j] = Vec::Fma(v, w[j], sums[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) call.Store(r + i, n + j, k_begin, k_end, sums[i][j]);
  }
}

template <int kColumns>
static void DotRows(const QuantCall& call, const float* unpacked, int64_t n, int64_t k_begin, int64_t k_end) {
  int64_t r = 0;
  for (; r + kDotRows <= call.num_rows; r += kDotRows) {
    DotTile<kDotRows, kColumns>(call, unpacked, r, n, k_begin, k_end);
  }
  for (; r < call.num_rows; ++r) DotTile<1, kColumns>(call, unpacked, r, n, k_begin, k_end);
}

template <typename Format>
static void SeveralRowsOfX(const QuantCall& call, int64_t n_begin, int64_t n_end) {
  alignas(64) float unpacked[kUnpackedWeightRows * kSegmentStride];
  const int64_t count = n_end - n_begin;
  int64_t k_begin = 0;
  do {
    const int64_t k_end = call.SegmentEnd(k_begin);
    for (int64_t i = 0; i < count; ++i)
      Unpack<Format>(call.w, n_begin + i, k_begin, k_end, unpacked + i * kSegmentStride);
    int64_t i = 0;
    for (; i + kDotColumns <= count; i += kDotColumns) {
      DotRows<kDotColumns>(call, unpacked + i * kSegmentStride, n_begin + i, k_begin, k_end);
    }
    for (; i < count; ++i) DotRows<1>(call, unpacked + i * kSegmentStride, n_begin + i, k_begin, k_end);
    k_begin = k_end;
  } while (k_begin < call.w.num_columns);
}

template <typename Format>
static void QuantLinearTyped(const QuantCall& call, int64_t row_begin, int64_t row_end) {
  if (call.num_rows == 1) return FewRowsOfX<Format, 1>(call, row_begin, row_end);
  if constexpr (kDirectRows >= 2) {
    if (call.num_rows == 2) return FewRowsOfX<Format, 2>(call, row_begin, row_end);
  }
  if constexpr (kDirectRows >= 3) {
    if (call.num_rows == 3) return FewRowsOfX<Format, 3>(call, row_begin, row_end);
  }
  for (int64_t n = row_begin; n < row_end; n += kUnpackedWeightRows) {
    SeveralRowsOfX<Format>(call, n, n + kUnpackedWeightRows < row_end ? n + kUnpackedWeightRows : row_end);
  }
}

// Calls f with an object of the type that implements `format`.
template <typename F>
static inline void WithFormat(QuantFormat format, F&& f) {
  switch (format) {
    case QuantFormat::kQ8_0:
      return f(FormatQ8_0());
    case QuantFormat::kQ4_0:
      return f(FormatQ4_0());
    case QuantFormat::kQ4_1:
      return f(FormatQ4_1());
    case QuantFormat::kQ5_0:
      return f(FormatQ5_0());
    case QuantFormat::kQ5_1:
      return f(FormatQ5_1());
    case QuantFormat::kQ2_K:
      return f(FormatQ2_K());
    case QuantFormat::kQ3_K:
      return f(FormatQ3_K());
    case QuantFormat::kQ4_K:
      return f(FormatQ4_K());
    case QuantFormat::kQ5_K:
      return f(FormatQ5_K());
    case QuantFormat::kQ6_K:
      return f(FormatQ6_K());
    case QuantFormat::kIQ4_NL:
      return f(FormatIQ4_NL());
    case QuantFormat::kIQ4_XS:
      return f(FormatIQ4_XS());
    case QuantFormat::kMXFP4:
      return f(FormatMXFP4());
    case QuantFormat::kIQ1_S:
      return f(FormatIQ1_S());
    case QuantFormat::kIQ1_M:
      return f(FormatIQ1_M());
    case QuantFormat::kIQ2_XXS:
      return f(FormatIQ2_XXS());
    case QuantFormat::kIQ2_XS:
      return f(FormatIQ2_XS());
    case QuantFormat::kIQ2_S:
      return f(FormatIQ2_S());
    case QuantFormat::kIQ3_XXS:
      return f(FormatIQ3_XXS());
    case QuantFormat::kIQ3_S:
      return f(FormatIQ3_S());
    case QuantFormat::kTQ1_0:
      return f(FormatTQ1_0());
    case QuantFormat::kTQ2_0:
      return f(FormatTQ2_0());
    case QuantFormat::kNVFP4:
      return f(FormatNVFP4());
    case QuantFormat::kGroupUInt4:
      return f(FormatGroupUInt4());
    case QuantFormat::kGroupUInt8:
      return f(FormatGroupUInt8());
    case QuantFormat::kGroupFloat8:
      return f(FormatGroupFloat8());
    case QuantFormat::kGroupTable4:
      return f(FormatGroupTable4());
  }
}

static void QuantLinear(const float* x, int64_t x_stride, int64_t num_rows, const CheckpointQuantMatrixView& w,
                        const float* bias, float* y, int64_t y_stride, int64_t row_begin, int64_t row_end) {
  const QuantCall call{x, x_stride, num_rows, w, bias, y, y_stride};
  WithFormat(w.format, [&](auto format) { QuantLinearTyped<decltype(format)>(call, row_begin, row_end); });
}

static void Dequantize(const CheckpointQuantMatrixView& w, int64_t n, int64_t column_begin, int64_t column_end,
                       float* out) {
  WithFormat(w.format, [&](auto format) { Unpack<decltype(format)>(w, n, column_begin, column_end, out); });
}
