// Stored weights as the integer kernels take them: the codes of a CheckpointQuantMatrix with their scales and minimums,
// for packing into a PackedQuantMatrix. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm {

// The form that holds the matrix' codes; none for formats of two and three bits and of floats, and for groups that
// begin inside a block of 32 columns.
std::optional<PackedQuantForm> PackedFormOf(const CheckpointQuantMatrixView& w);

// A row's codes [w.num_columns], scales and minimums [w.num_columns / form.scale_columns, rounded up]; minimums where
// the form has them. All exact, before scales and minimums are rounded to float16. Null codes are left out. REQUIRES:
// `form` is PackedFormOf(w).
void ReadCodes(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, int64_t row, uint8_t* codes,
               float* scales, float* minimums);

}  // namespace vllm
