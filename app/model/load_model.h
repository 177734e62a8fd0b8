// LoadedModel: a model ready to answer: its files, tokenizer, template and running engine. Owned by a command; main
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/settings.h"
#include "app/model/model_files.h"
#include "app/model/sampling_defaults.h"
#include "engine/frontend/llm_engine.h"
#include "engine/request/sampling_params.h"

namespace vllm {

struct LoadedModel {
  ModelLocation location;
  SamplingParams sampling_params;              // what a request starts from, see sampling_defaults.h
  std::vector<SamplingValue> sampling_values;  // the same with the source of each value
  std::shared_ptr<const Tokenizer> tokenizer;  // null only where it was not required
  std::unique_ptr<PromptRenderer> renderer;    // null: the model has no chat template
  std::unique_ptr<LLMEngine> engine;
  double load_seconds = 0.0;
};

// Loads everything and starts the engine's threads. From here on signals no longer end the process by themselves: the
// caller polls them. Throws ConfigError, ModelError, ResourceError, TokenizerError, ChatTemplateError.
LoadedModel LoadModel(const Settings& settings, bool tokenizer_required = true);

// Sampling flags that no request could use are a mistake of the command line. Throws ConfigError.
void CheckSamplingDefaults(SamplingParams params, const VllmConfig& config);

}  // namespace vllm
