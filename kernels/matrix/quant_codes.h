// Converts checkpoint formats for the integer kernels. Reads the codes, scales and minimums of a CheckpointQuantMatrix,
// so that they can be packed into a PackedQuantMatrix. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm::kernels {

// Returns the form that holds the matrix's codes. Returns nothing for 2-bit, 3-bit and float formats, and if a group
// begins inside a block of 32 columns.
std::optional<PackedQuantForm> PackedFormOf(const CheckpointQuantMatrixView& w);

// Memory for the arrays of a QuantRow.
struct QuantRowBuffers {
  uint8_t* codes;
  float* scales;
  float* minimums;
  float* super_scales;
  float* super_minimums;
};

// Reads a row, of which only arrays that the form has are written. Scales and minimums are not rounded to float16 yet.
// If to.codes is null, no codes are read.
// REQUIRES: `form` is PackedFormOf(w).
void ReadCodes(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, int64_t row, const QuantRowBuffers& to);

}  // namespace vllm::kernels
