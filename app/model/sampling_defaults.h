// The default sampling parameters of a request, and the source of each value.
//
// Each parameter is taken from the first source that sets it: flags and configuration, then the model's own file
// (generation_config.json, or the general.sampling.* keys of a GGUF file), then a fallback. If the model sets no
// sampling parameter, the fallback is llama.cpp's (temperature 0.8, top-k 40, top-p 0.95, min-p 0.05). If it sets some,
// the others are neutral, as in transformers and vLLM, because the model's authors chose its values as a set. With
// --generation-config vllm, the model's file is ignored and the fallback is neutral. The fields of a batch row override
// the result one by one. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/cli/settings.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/request/sampling_params.h"

namespace vllm::app {

// The effective value of a parameter, and the source of the value.
struct SamplingValue {
  std::string name;    // of the flag, without leading dashes: "top-p"
  std::string value;   // as JSON text: 0.9, null, ["###"]
  std::string source;  // "command line", "generation_config.json", "default", ...
};

struct SamplingDefaults {
  SamplingParams params;
  // One entry per sampling flag of the command (for show: of any command), in the order of the flag table. With
  // temperature 0, top-k, top-p and min-p are shown as the neutral values that the engine then uses.
  std::vector<SamplingValue> values;
};

// Returns the defaults for the requests of the command in `settings`.
SamplingDefaults MakeSamplingDefaults(const Settings& settings, const GenerationConfig& generation);

// Returns {"temperature": {"value": 0.8, "source": "default"}, ...} for max_tokens, temperature, top_k, top_p, min_p
// and the three penalties.
nlohmann::ordered_json SamplingJson(const std::vector<SamplingValue>& values);
// Returns a line such as "temperature 0.2, top-p 0.9 (generation_config.json); top-k 40 (command line)".
std::string SamplingText(const std::vector<SamplingValue>& values);

}  // namespace vllm::app
