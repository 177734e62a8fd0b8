// Converts checkpoint formats for the integer kernels: reads the codes, scales and minimums of a
// CheckpointQuantMatrix, to be packed into a PackedQuantMatrix. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm::kernels {

// Returns the form that holds the matrix' codes. Returns nothing for 2-bit, 3-bit and float formats, and for groups
// that begin inside a block of 32 columns.
std::optional<PackedQuantForm> PackedFormOf(const CheckpointQuantMatrixView& w);

// Reads a row's codes [w.num_columns], scales and minimums [w.num_columns / form.scale_columns, rounded up]. Minimums
// are written only if the form has them. All values are exact: scales and minimums are not rounded to float16 yet. If
// `codes` is null, codes are skipped.
// REQUIRES: `form` is PackedFormOf(w).
void ReadCodes(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, int64_t row, uint8_t* codes,
               float* scales, float* minimums);

}  // namespace vllm::kernels
