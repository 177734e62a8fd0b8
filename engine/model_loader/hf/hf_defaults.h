// Adds fields that are missing from config.json, with the defaults of transformers' config class for the model_type.
// Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace vllm {

// Adds fields that are missing from `config`, a JSON object, with their defaults for `model_type`. Keeps a field that
// is present, even if it is null.
void AddModelTypeDefaults(const std::string& model_type, nlohmann::json& config);

// Does the same for the model's sizes, which only the text_config of a multimodal config may omit.
void AddTextSizeDefaults(const std::string& model_type, nlohmann::json& config);

}  // namespace vllm
