// Reads compressed-tensors and FP8 checkpoints: codes stored as [out, in], with scales for blocks of outputs and
// inputs. Pure functions of a weight source; any thread.
//
// clang-format off
//   int8, float8   X.weight I8 or F8_E4M3 [out, in]
//   packed         X.weight_packed I32 [out, ceil(in * bits / 32)]: code k of a row is bits [k * bits, (k + 1) * bits)
//                  of the row's words; signed codes have 2^(bits - 1) added
//   scales         X.weight_scale, or X.weight_scale_inv (also a factor, despite its name):
//                  [ceil(out / block_rows), ceil(in / group_size)], or one per row: [out, 1] or [out],
//                  or one for the matrix: [1] or []
//   zero points    X.weight_zero_point: I8 with the shape of the scales,
//                  or packed along the outputs: I32 [ceil(out * bits / 32), groups]
//   group index    X.weight_g_idx I32 [in]: the group of each input; if absent, runs of group_size
// clang-format on
#pragma once

#include <string>

#include "engine/config/quantization_config.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Opens layer `name`, quantized with `scheme`. The result borrows the bytes of `weights`. Throws ModelError naming the
// tensor.
GroupSource OpenRows(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
                     const MatrixRows& rows);

}  // namespace vllm
