// Reads the matrices of quantized Hugging Face checkpoints. Pure functions of a weight source; any thread.
#pragma once

#include <optional>
#include <string>

#include "engine/config/model_config.h"
#include "engine/model_loader/quantization/checkpoint_matrix.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Returns rows of layer `name`'s matrix, or nullopt if the layer is not quantized in the checkpoint. Throws
// ModelError naming the tensor that is missing or has an invalid type, shape or value.
std::optional<CheckpointMatrix> LoadQuantized(const WeightSource& weights, const ModelConfig& model,
                                              const std::string& name, const MatrixRows& rows,
                                              const kernels::BufferSource& buffers, const ForEach& for_each);

}  // namespace vllm
