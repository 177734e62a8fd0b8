// Reads the matrices of quantized Hugging Face checkpoints. Pure functions of a weight source; any thread.
#pragma once

#include <optional>
#include <string>

#include "engine/config/model_config.h"
#include "engine/model_loader/quantization/checkpoint_matrix.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// The part of layer `name`'s matrix, or nothing where model.quantization leaves the layer as plain numbers. Throws
// ModelError naming the tensor that is missing or whose type, shape or values cannot be.
std::optional<CheckpointMatrix> LoadQuantized(const WeightSource& weights, const ModelConfig& model,
                                              const std::string& name, const MatrixPart& part,
                                              const BufferSource& buffers, const ForEach& for_each);

}  // namespace vllm
