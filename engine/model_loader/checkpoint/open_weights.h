// Opens the weights of a model: safetensors files, GGUF files or dummy weights. The caller owns the result. A pure
// function of the files; any thread.
#pragma once

#include <memory>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// With LoadFormat::kDummy, returns dummy weights. Otherwise opens config.model.gguf_file or, if that is empty,
// model.safetensors or the shards of model.safetensors.index.json in config.model.directory. Throws ModelError, or
// ResourceError if a file cannot be mapped or the system runs out of a resource, such as file descriptors.
std::unique_ptr<WeightSource> OpenWeights(const VllmConfig& config);

}  // namespace vllm
