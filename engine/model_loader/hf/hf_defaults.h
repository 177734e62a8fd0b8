// What transformers' config classes assume where config.json is silent, by model_type. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace vllm {

// Adds to `config`, a JSON object, the fields of its model_type that it lacks and that change what is computed. A field
// that is there stays, also as null.
void AddFamilyDefaults(const std::string& model_type, nlohmann::json& config);

// The same for the sizes, which files leave out only inside a multimodal config's text_config.
void AddTextSizeDefaults(const std::string& model_type, nlohmann::json& config);

}  // namespace vllm
