// Converts quantized checkpoint matrices to the packed layout of the integer kernels. Pure functions; any thread.
#pragma once

#include "engine/model_loader/quantization/checkpoint_matrix.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm {

// Returns true if float16 is precise enough for the scales and minimums of `w`: either all are exact, or none overflows
// and rounding changes each by at most 2^-11 of its value or 2^-13 of the largest. REQUIRES: `form` is PackedFormOf(w).
bool ScalesFit(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
               const ForEach& for_each);

// Fills `packed` with the codes of `w`. REQUIRES: `form` is PackedFormOf(w); `packed` has that form and the shape of
// `w`.
void PackCodes(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
               const ForEach& for_each, kernels::PackedQuantMatrix& packed);

}  // namespace vllm
