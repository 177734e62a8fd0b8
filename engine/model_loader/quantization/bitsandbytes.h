// Reads bitsandbytes checkpoints as transformers saves them: NF4, FP4 and LLM.int8. Pure functions of a weight source;
// any thread.
//
// clang-format off
//   LLM.int8  X.weight I8 [out, in]
//             X.SCB F32 [out]: the largest magnitude of each row, so that w = code * SCB / 127
//   4 bit     X.weight U8 [out * in / 2, 1]: the codes of all rows, one row after the other, each byte with the first
//             code in its high half
//             X.weight.quant_map F32 [16]: the values of the codes
//             X.weight.quant_state.bitsandbytes__nf4 (or __fp4) U8: a JSON object, see below
//             X.weight.absmax F32 [blocks]: the scale of each run of `blocksize` codes, which may span rows
//   or, with double quantization,
//             X.weight.absmax U8 [blocks]: the scale is nested_quant_map[absmax] * nested_absmax + nested_offset
//             X.weight.nested_absmax F32 [ceil(blocks / nested_blocksize)]
//             X.weight.nested_quant_map F32 [256]
// clang-format on
//
// The JSON object: {"quant_type": "nf4", "blocksize": 64, "shape": [out, in], "dtype": "bfloat16",
// "nested_blocksize": 256, "nested_offset": 0.03, "nested_dtype": "float32"}. The nested fields mean double
// quantization.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Returns true if the checkpoint has codes of layer `name`.
bool HasBitsAndBytes(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name);

// Opens layer `name`. The result borrows the bytes of `weights`. Throws ModelError naming the tensor.
GroupSource OpenBitsAndBytes(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
                             const MatrixRows& rows);

}  // namespace vllm
