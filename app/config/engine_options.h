// Settings -> VllmConfig and SamplingParams. Pure functions of the settings and the model's own files.
#pragma once

#include <cstdint>
#include <optional>

#include "app/config/settings.h"
#include "engine/config/vllm_config.h"
#include "engine/model_loader/hf_config.h"
#include "engine/request/sampling_params.h"

namespace vllm {

// --kv-cache-dtype; none for auto.
std::optional<KvDType> CacheDType(const Settings& settings);

// Not finalized. Throws ConfigError naming flag and value.
VllmConfig MakeVllmConfig(const Settings& settings, const ModelConfig& model);

// The model's own defaults (generation_config.json; do_sample false means temperature 0), then the settings.
SamplingParams MakeSamplingParams(const Settings& settings, const GenerationConfig& generation);

// --seed, or a new one each time for commands that talk with a person.
uint64_t ChooseSeed(const Settings& settings);

}  // namespace vllm
