// Which layers the names of a quantization_config mean. Pure functions; any thread.
#pragma once

#include <string>

#include "engine/config/quantization_config.h"

namespace vllm {

// False for "re:" before what is no regular expression.
bool IsTarget(const std::string& name);

bool Matches(const QuantizationTargets& targets, const std::string& layer);

}  // namespace vllm
