// What a GGUF file says of its model, as the ModelConfig that config.json of the same model would give. Pure functions;
// any thread.
#pragma once

#include <string>

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/file.h"
#include "engine/model_loader/hf/hf_config.h"

namespace vllm {

// Throws ModelError `gguf file <path>: <key>: <why> (<value>)`; limits are those of LoadModelConfig. An architecture
// that is not known is refused with those that are. dtype is the type of most matrices, float16 where they are blocks.
ModelConfig ReadGgufConfig(const GgufFile& file);
ModelConfig LoadGgufConfig(const std::string& path);

// The model's own sampling defaults, from general.sampling.*. Throws ModelError.
GenerationConfig LoadGgufGenerationConfig(const std::string& path);

// How the file says its matrices are stored: "Q4_K_M", or the type that most of them have; "none" where none are in
// blocks.
std::string GgufQuantization(const GgufFile& file);

// Parameters as the tensors' shapes say; rotary tables are none.
int64_t CountParameters(const GgufFile& file);

}  // namespace vllm
