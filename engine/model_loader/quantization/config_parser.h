// Reads quantization_config (or compression_config) of config.json. A pure function; any thread.
#pragma once

#include "engine/config/quantization_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Absent: method none. Throws ModelError naming the field: a method that is not known, or a combination that cannot be
// computed, is refused by its name.
QuantizationConfig ReadQuantization(const ConfigFields& config);

}  // namespace vllm
