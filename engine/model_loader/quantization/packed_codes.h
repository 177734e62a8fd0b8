// Converts quantized checkpoint matrices to the packed layout of the integer kernels. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/model_loader/quantization/checkpoint_matrix.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm {

// What decides whether float16 is precise enough for the scales and minimums of a matrix.
struct ScaleRange {
  bool is_exact = true;  // all are float16 values
  float largest = 0.0f;  // the largest magnitude

  void Add(const ScaleRange& other);
  // Returns true if all are exact, or none overflows and rounding changes each by at most 2^-11 of its value or 2^-13
  // of the largest.
  bool Fits() const;
};

// REQUIRES: `form` is PackedFormOf(w).
ScaleRange RangeOfScales(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
                         const ForEach& for_each);

// Packs the rows of `w` as rows [first_row, first_row + w.num_rows) of `packed`, in those panels of 16 rows for which
// `claim` returns true. REQUIRES: `form` is PackedFormOf(w); `packed` has that form and the columns of `w`; first_row
// is a multiple of 16.
void PackCodes(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
               const ForEach& for_each, int64_t first_row, const std::function<bool(int64_t panel)>& claim,
               kernels::PackedQuantMatrix& packed);

}  // namespace vllm
