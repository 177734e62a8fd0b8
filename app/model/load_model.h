// LoadedModel: a model with its tokenizer, chat template and running engine, ready for requests. Owned by a command;
// main thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/settings.h"
#include "app/live/live_publisher.h"
#include "app/model/model_files.h"
#include "app/model/sampling_defaults.h"
#include "app/model/thinking_mode.h"
#include "app/output/run_until_done.h"
#include "engine/frontend/llm_engine.h"
#include "engine/request/sampling_params.h"

namespace vllm::app {

struct LoadedModel {
  LoadedModel() = default;
  LoadedModel(LoadedModel&&) = default;
  // Destroys the old publisher before the old engine.
  LoadedModel& operator=(LoadedModel&& other) noexcept;

  ModelLocation location;
  SamplingParams sampling_params;                           // the defaults of a request, see sampling_defaults.h
  std::vector<SamplingValue> sampling_values;               // the effective sampling values, with their sources
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;    // may be null only if it was not required
  std::unique_ptr<PromptRenderer> renderer;                 // null: there is no chat template
  std::shared_ptr<const ReasoningFormat> reasoning_format;  // null: unknown, or the model does not think
  std::unique_ptr<LLMEngine> engine;
  const BackgroundWork* background = nullptr;  // other requests that use the engine, see RunUntilDone; borrowed
  std::unique_ptr<LivePublisher> publisher;    // after the engine, so that it is destroyed first
  Seconds load_time{0};
};

// Loads the model and starts the engine's threads. Afterwards SIGINT, SIGTERM and SIGHUP no longer end the process, so
// the caller must poll for them. Under RLIMIT_AS the tokenizer is loaded before the weights. Throws ConfigError,
// ModelError, ResourceError, TokenizerError, ChatTemplateError.
LoadedModel LoadModel(const Settings& settings, bool tokenizer_required = true);

// Throws ConfigError if one of the defaults in `params` is invalid for this model and configuration. The message names
// no flag, because the value may come from a flag, the configuration file or the model's own files.
void CheckSamplingDefaults(SamplingParams params, const VllmConfig& config);

}  // namespace vllm::app
