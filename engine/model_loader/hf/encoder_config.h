// Reads the fields of config.json that encoders such as BERT have, and those that say what a model without an output
// projection is for. Pure functions; any thread. They throw ModelError naming the field.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// Adds the fields of `config`, a JSON object, under the names that other model types have for them, unless they are
// present.
void AddStandardFieldNames(const std::string& model_type, nlohmann::json& config);

// Sets is_encoder and the fields that only encoders have. REQUIRES: the sizes in `config` are set.
void ReadEncoder(const ConfigFields& fields, ModelConfig& config);

// Sets the windows of an encoder's layers. REQUIRES: config.layers has the windows of a causal model.
void ReadEncoderLayers(const ConfigFields& fields, ModelConfig& config);

// Sets can_generate and the classifier according to config.architecture, and the sizes that vectors may be cut to.
void ReadHead(const ConfigFields& fields, ModelConfig& config);

}  // namespace vllm
