// Converts a GGUF file's metadata to a ModelConfig like the one that LoadModelConfig reads from the config.json of the
// same model. Pure functions of the file; any thread.
#pragma once

#include <string>

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/format/file.h"
#include "engine/model_loader/hf/hf_config.h"

namespace vllm {

// Throws ModelError `gguf file <path>: <key or tensor>: <why>`. LoadGgufConfig and LoadGgufGenerationConfig also throw
// what GgufFile throws. The limits of the sizes are those of LoadModelConfig, except the limit of the sliding window.
// The error for an unknown architecture lists the known ones. If no tensor is quantized, dtype is whichever of float32,
// float16 and bfloat16 has the most bytes in matrices (float32 if none of them occurs). Otherwise it is bfloat16 if
// bfloat16 has the most bytes of the three, else float16.
ModelConfig ReadGgufConfig(const GgufFile& file);
ModelConfig LoadGgufConfig(const std::string& path);

// Returns the model's default sampling parameters, from general.sampling.*. Throws like LoadGgufConfig.
GenerationConfig LoadGgufGenerationConfig(const std::string& path);

// Returns the file's quantization, for display: llama.cpp's name of the mixture ("Q4_K_M"), or else the block type with
// the most bytes. Returns "none" if no tensor is quantized.
std::string GgufQuantization(const GgufFile& file);

// Returns the number of elements in all tensors except those with frequency divisors ("rope_...").
int64_t CountParameters(const GgufFile& file);

}  // namespace vllm
