// Reads HQQ checkpoints as transformers saves them, with groups along the rows (axis 1). Pure functions of a weight
// source; any thread.
//
// clang-format off
//   X.W_q    U8 [ceil(G * bits / 8), group_size], where G is the number of groups, out * in / group_size. Group g is row
//            g mod R of the R rows, in bits [8 - bits * (g div R + 1), 8 - bits * (g div R))
//   X.scale  [G, 1]
//   X.zero   [G, 1], not rounded to integers
// clang-format on
//
// w = (code - zero) * scale. The groups of a row follow each other.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Opens layer `name`. The result borrows the bytes of `weights`. Throws ModelError naming the tensor.
GroupSource OpenHqq(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
                    const MatrixRows& rows);

}  // namespace vllm
