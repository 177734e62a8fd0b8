// The defaults that transformers' config classes use for fields missing from config.json, by model_type. Pure
// functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace vllm {

// Adds the missing fields of `model_type` that affect the computation to `config`, a JSON object. Keeps a field that is
// present, even if it is null.
void AddModelTypeDefaults(const std::string& model_type, nlohmann::json& config);

// Does the same for the model's sizes, which only the text_config of a multimodal config may omit.
void AddTextSizeDefaults(const std::string& model_type, nlohmann::json& config);

}  // namespace vllm
