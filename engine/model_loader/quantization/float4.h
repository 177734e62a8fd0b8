// Reads layers with E2M1 codes (NVFP4 and MXFP4) as compressed-tensors and NVIDIA's Model Optimizer write them, and
// NVFP4 blocks of GGUF files if the matrix has a factor. Pure functions; any thread.
//
// clang-format off
//   compressed-tensors NVFP4  X.weight_packed U8 [out, in / 2]: column k is the low half of byte k / 2 if k is even,
//                             else the high half
//                             X.weight_scale F8_E4M3 [out, in / 16]
//                             X.weight_global_scale F32, one value, by which the scales are divided
//   compressed-tensors MXFP4  X.weight_packed U8 [out, in / 2]
//                             X.weight_scale U8 [out, in / 32]: the exponents of powers of two, plus 127
//   Model Optimizer NVFP4     X.weight U8 [out, in / 2]
//                             X.weight_scale F8_E4M3 [out, in / 16]
//                             X.weight_scale_2 F32, one value, by which the scales are multiplied
// clang-format on
//
// The scales of activations (input_scale, input_global_scale) are not read, because activations are not rounded to four
// bits. vLLM does the same on hardware without FP4.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Returns the name of the tensor with the codes of layer `name`.
std::string Float4Codes(QuantizationMethod method, const std::string& name);

// Opens layer `name`. The result borrows the bytes of `weights`. Throws ModelError naming the tensor if one is missing
// or has the wrong type or shape, or if the scale of the matrix is not above 0. REQUIRES: `format` is not kNone.
GroupSource OpenFloat4(const WeightSource& weights, QuantizationMethod method, Float4Format format,
                       const std::string& name, const MatrixRows& rows);

// Opens a matrix of NVFP4 blocks, with view.scale as a factor. Borrows the bytes of the view. The scales of a block are
// E4M3 numbers without a sign, and 0x7f is 0, as in GGML.
GroupSource OpenScaledNvfp4(const TensorView& view, const MatrixRows& rows);

}  // namespace vllm
