// Reads config.json and generation_config.json of a Hugging Face directory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/model_config.h"

namespace vllm {

// Throws ModelError `config.json <directory>: <field>: <why> (<value>)`. Every size is checked (HF limits: layers <=
// 1024, heads <= 1024, sizes <= 2^24, vocab <= 2^24) and head counts divide. dtype and max_model_len are set to the
// checkpoint's own. `check_architecture` is called with a config that holds no more than its names, so that an unknown
// architecture is refused as that and not for a field that it spells in its own way.
using ArchitectureCheck = std::function<void(const ModelConfig&)>;
ModelConfig LoadModelConfig(const std::string& directory, const ArchitectureCheck& check_architecture = {});

// The model's own sampling defaults; absent fields are none. A missing generation_config.json gives an empty value.
struct GenerationConfig {
  std::string origin = "generation_config.json";  // or "GGUF metadata"
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<int64_t> max_new_tokens;
  std::vector<int32_t> eos_token_ids;
};
GenerationConfig LoadGenerationConfig(const std::string& directory);

}  // namespace vllm
