// Matches layers against the names in a quantization_config. Pure functions; any thread.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"

namespace vllm {

// Returns false if `name` is "re:" followed by an invalid regular expression.
bool IsTarget(const std::string& name);

// Returns true if `targets` selects the layer. `layer` is a full module name: "model.layers.0.mlp.up_proj".
bool Matches(const QuantizationTargets& targets, const std::string& layer);

}  // namespace vllm
