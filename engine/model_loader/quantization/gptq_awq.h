// GPTQ and AutoAWQ checkpoints: codes packed eight or four to an int32, matrices stored input by output.
//
//   GPTQ  X.qweight I32 [in * bits / 32, out]: code (k, n) is bits b * (k mod 32/b) of word (k div 32/b, n)
//         X.qzeros  I32 [groups, out * bits / 32]: likewise along n; one lower than the zero point, but in gptq_v2
//         X.scales  [groups, out]      X.g_idx I32 [in]: each input's group; absent: runs of group_size
//   AWQ   X.qweight I32 [in, out / 8]: output n is half byte (0, 4, 1, 5, 2, 6, 3, 7)[n mod 8] of word n div 8
//         X.qzeros  I32 [groups, out / 8]: likewise    X.scales [groups, out]
//
// Pure functions of a weight source; any thread.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Layer `name`. Throw ModelError naming the tensor.
GroupSource OpenGptq(const WeightSource& weights, const QuantizationConfig& config, const std::string& name,
                     const MatrixPart& part);
GroupSource OpenAwq(const WeightSource& weights, const QuantizationConfig& config, const std::string& name,
                    const MatrixPart& part);

}  // namespace vllm
