// Reads quantization_config, or the older compression_config, of config.json, and hf_quant_config.json. Pure functions
// of the files; any thread.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Returns a config with method kNone if config.json has neither. Throws ModelError naming the field if the method is
// missing or unknown, or a setting is missing, invalid or not supported.
QuantizationConfig ReadQuantization(const ConfigFields& config);

// Reads hf_quant_config.json, in which NVIDIA's Model Optimizer writes the settings if config.json lacks them. Returns
// a config with method kNone if the directory has no such file or its quant_algo is null. Throws like ReadQuantization.
QuantizationConfig ReadHfQuantConfig(const std::string& directory);

}  // namespace vllm
