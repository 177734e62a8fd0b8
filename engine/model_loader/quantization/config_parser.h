// Reads quantization_config, or the older compression_config, of config.json. A pure function; any thread.
#pragma once

#include "engine/config/quantization_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Returns a config with method kNone if config.json has neither. Throws ModelError naming the field if the method is
// missing or unknown, or a setting is missing, invalid or not supported.
QuantizationConfig ReadQuantization(const ConfigFields& config);

}  // namespace vllm
