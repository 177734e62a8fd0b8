// Reads GPTQ and AutoAWQ checkpoints: matrices stored as [in, out], with several codes packed in an int32. Pure
// functions of a weight source; any thread.
//
// clang-format off
//   GPTQ  X.qweight I32 [in * bits / 32, out]: code (k, n) is bits [k * bits, (k + 1) * bits) of the words of column n.
//                   With three bits, a code can begin in one word and end in the next.
//         X.qzeros  I32 [groups, out * bits / 32]: the zero points minus 1 (in gptq_v2, the zero points), packed the
//                   same way along n
//         X.scales  [groups, out]
//         X.g_idx   I32 [in]: the group of each input; if absent, runs of group_size
//   AWQ   X.qweight I32 [in, out / 8]: output n is 4-bit field (0, 4, 1, 5, 2, 6, 3, 7)[n mod 8] of word n div 8
//         X.qzeros  I32 [groups, out / 8]: packed the same way
//         X.scales  [groups, out]
// clang-format on
// Field i of a word is bits [i * bits, (i + 1) * bits), from the least significant bit.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Open layer `name`. The results borrow the bytes of `weights`. Both throw ModelError naming the tensor.
GroupSource OpenGptq(const WeightSource& weights, const QuantizationConfig& config, const std::string& name,
                     const MatrixRows& rows);
GroupSource OpenAwq(const WeightSource& weights, const QuantizationConfig& config, const std::string& name,
                    const MatrixRows& rows);

}  // namespace vllm
