// Opens a checkpoint in any of the formats that can be loaded. Any thread.
#pragma once

#include <memory>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Opens the weights of config.model.gguf_file, or of config.model.directory: model.safetensors, or the shards of
// model.safetensors.index.json, or with LoadFormat::kDummy values that depend on the tensor's name only. Throws
// ModelError.
std::unique_ptr<WeightSource> OpenWeights(const VllmConfig& config);

}  // namespace vllm
