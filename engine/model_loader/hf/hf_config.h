// Reads config.json and generation_config.json of a Hugging Face model directory. Pure functions of the files; any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/model_config.h"

namespace vllm {

// Reads config.json, and the EOS token ids of generation_config.json. Throws ModelError
// `config.json <directory>: <field>: <why> (<value>)`, or the same with generation_config.json, and ResourceError like
// ReadTextFile. Checks that every size in config.json is within its limit (layers 1024, heads 1024, head_dim 2^16,
// experts 4096, others 2^24) and that the number of KV heads divides the number of heads. Sets dtype and max_model_len
// to the checkpoint's own values.
//
// Calls `check_architecture` early, with a config in which only model, directory and architecture are set, so that an
// unknown architecture is reported as unknown and not as one that lacks a field.
using ArchitectureCheck = std::function<void(const ModelConfig&)>;
ModelConfig LoadModelConfig(const std::string& directory, const ArchitectureCheck& check_architecture = {});

// The model's default sampling parameters. Absent fields are nullopt.
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
// Returns a config without values if generation_config.json is missing. Throws ModelError if the file cannot be read or
// is malformed, or if a value has the wrong type or is out of range. Throws ResourceError like ReadTextFile.
GenerationConfig LoadGenerationConfig(const std::string& directory);

}  // namespace vllm
