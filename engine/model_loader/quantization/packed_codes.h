// Stored weights in the form of the integer kernels. Pure functions; any thread.
#pragma once

#include "engine/model_loader/quantization/checkpoint_matrix.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm {

// Whether the scales and minimums of `w` keep their worth as float16: all are exact, or none overflows and rounding
// moves none by more than 2^-11 of itself or 2^-13 of the largest. REQUIRES: `form` is PackedFormOf(w).
bool ScalesFit(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, const ForEach& for_each);

// Fills `packed`, which has the shape of `w` and the form.
void PackCodes(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, const ForEach& for_each,
               PackedQuantMatrix& packed);

}  // namespace vllm
