// LoadedModel: a model with its tokenizer, chat template and running engine, ready for requests. Owned by a command;
// main thread.
#pragma once

#include <cstdint>
#include <functional>
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

// How LoadEngine and LoadModel load a model.
struct LoadOptions {
  bool tokenizer_required = true;
  bool needs_generation = true;  // a model that generates no text is an error
  // Changes the model's configuration before anything else uses it. May be empty.
  std::function<void(const ModelLocation&, ModelConfig&)> adjust_model = {};
  // Set for the processes of a distributed job, see ParallelConfig.
  int64_t num_processes = 1;
  int64_t num_local_processes = 1;
  // Called with the engine of this process, once it is ready. Returns the client that runs the requests. May be empty.
  std::function<std::unique_ptr<EngineCoreClient>(const VllmConfig&, std::unique_ptr<EngineCoreClient>)> extend_client =
      {};
  // Called with the configuration before anything is loaded. May be empty.
  std::function<void(const VllmConfig&)> check_config = {};
  // Receives warnings for the user. The default prints them.
  std::function<void(const std::string&)> warn = {};
};

// A model with a ready engine, without the front end.
struct LoadedEngine {
  ModelLocation location;
  VllmConfig config;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;    // may be null only if it was not required
  std::unique_ptr<PromptRenderer> renderer;                 // null: there is no chat template
  std::shared_ptr<const ReasoningFormat> reasoning_format;  // null: unknown, or the model does not think
  std::unique_ptr<EngineCoreClient> client;
};

// Loads the model and starts the engine's threads. Throws as LoadModel.
LoadedEngine LoadEngine(const Settings& settings, const LoadOptions& options);

// Loads the model and starts the engine's threads. Afterwards SIGINT, SIGTERM and SIGHUP no longer end the process, so
// the caller must poll for them. Under RLIMIT_AS the tokenizer is loaded before the weights. Throws ConfigError,
// ModelError, ResourceError, TokenizerError, ChatTemplateError.
LoadedModel LoadModel(const Settings& settings, const LoadOptions& options = {});

// Throws ConfigError if one of the defaults in `params` is invalid for this model and configuration. The message names
// no flag, because the value may come from a flag, the configuration file or the model's own files.
void CheckSamplingDefaults(SamplingParams params, const VllmConfig& config);

}  // namespace vllm::app
