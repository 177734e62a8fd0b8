// compressed-tensors and FP8 checkpoints: matrices of codes stored output by input, scales in blocks of outputs and
// inputs.
//
//   int8, float8   X.weight I8 or F8_E4M3 [out, in]
//   packed         X.weight_packed I32 [out, ceil(in * bits / 32)]: code k of a row is bits k * b to k * b + b - 1 of
//   the
//                  row's words; signed numbers with 2^(b-1) added
//   scales         X.weight_scale, or X.weight_scale_inv (which multiplies too): [out / block_rows, in / group_size],
//                  both rounded up; one for a row is [out, 1] or [out], one for all [1] or []
//   zero points    X.weight_zero_point: I8 of the scales' shape, or packed along the outputs, I32 [ceil(out * bits /
//   32),
//                  groups]
//   X.weight_g_idx I32 [in]: each input's group; absent: runs of group_size
//
// Pure functions of a weight source; any thread.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Layer `name` in `scheme`. Throws ModelError naming the tensor.
GroupSource OpenRows(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
                     const MatrixPart& part);

}  // namespace vllm
