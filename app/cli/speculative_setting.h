// Reads the value of --speculative-config. Pure functions; any thread.
#pragma once

#include <string_view>

#include "engine/config/speculative_config.h"

namespace vllm::app {

inline constexpr std::string_view kDefaultSpeculativeConfig = "auto";

// Parses
//   CONFIG = NAME | JSON object
//   NAME   = off | auto | ngram | suffix | grammar
// auto is suffix with the default values. The object has the key "method", which is a NAME or draft_model. Its other
// keys are members of SpeculativeConfig: those that begin with prompt_lookup_ belong to ngram, those that begin with
// suffix_decoding_ to suffix, model and draft_tensor_parallel_size to draft_model, and the others to every method. As
// in vLLM, null stands for a value that is not set, and prompt_lookup_min and prompt_lookup_max have the same value if
// only one is set. Throws ConfigError `--speculative-config: <key>: <why> (<value>)`. VllmConfig::Finalize checks the
// ranges.
//
//   Example: {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}
SpeculativeConfig ParseSpeculativeConfig(std::string_view text);

}  // namespace vllm::app
