#include "app/model/load_model.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "app/cli/engine_options.h"
#include "app/installed/last_use.h"
#include "app/model/loading_status.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "engine/core/thread_client.h"
#include "engine/data_parallel/data_parallel_client.h"
#include "engine/executor/make_executor.h"
#include "engine/trace/trace_recorder.h"
#include "kernels/threading/available_memory.h"
#include "kernels/threading/cpu_topology.h"
#include "kernels/threading/thread_pool.h"

namespace vllm::app {

void CheckSamplingDefaults(SamplingParams params, const VllmConfig& config) {
  try {
    params.Normalize(config.model.vocab_size, config.model.max_model_len, config.max_logprobs);
  } catch (const RequestError& error) {
    throw ConfigError(std::string("sampling: ") + error.what());
  }
}

LoadedModel& LoadedModel::operator=(LoadedModel&& other) noexcept {
  if (this == &other) return *this;
  std::destroy_at(this);
  return *std::construct_at(this, std::move(other));
}

LoadedModel LoadModel(const Settings& settings, bool tokenizer_required) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded;
  loaded.location = LocateModel(settings);
  ModelConfig model = ReadModelConfig(loaded.location);
  model.model = loaded.location.name;
  VllmConfig config = MakeVllmConfig(settings, model);
  SamplingDefaults sampling = MakeSamplingDefaults(settings, ReadGenerationConfig(loaded.location));
  loaded.sampling_params = std::move(sampling.params);
  loaded.sampling_values = std::move(sampling.values);
  config.Finalize();
  if (config.parallel.is_oversubscribed) {
    PrintWarning(std::to_string(config.parallel.num_threads()) + " threads share " +
                 std::to_string(kernels::CpuTopology(kernels::UsableCpus()).num_threads_at_once()) +
                 " CPUs, which is slow; lower --threads-per-rank, --tensor-parallel-size or --data-parallel-size");
  }
  CheckSamplingDefaults(loaded.sampling_params, config);
  std::shared_ptr<TraceRecorder> trace;
  if (const auto path = settings.Text("trace")) trace = std::make_shared<TraceRecorder>(*path);
  // Load the tokenizer while the weights load, or after them if no thread can be started. If the address space is
  // limited, load the tokenizer first: loading both at once may exceed the limit, and the KV cache is sized by the
  // memory that the tokenizer and the weights leave.
  std::string tokenizer_warning;
  const auto load = [&, tokenizer_required]() -> std::shared_ptr<const tokenizer::Tokenizer> {
    const bool is_needed = tokenizer_required || ModelHasTokenizer(loaded.location);
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer = is_needed ? LoadModelTokenizer(loaded.location) : nullptr;
    tokenizer_warning = TokenizerWarning(loaded.location);
    return tokenizer;
  };
  std::future<std::shared_ptr<const tokenizer::Tokenizer>> tokenizer =
      kernels::AddressSpaceIsLimited() ? std::async(std::launch::deferred, load) : std::async(load);
  if (kernels::AddressSpaceIsLimited()) tokenizer.wait();
  loaded.renderer = LoadPromptRenderer(settings, loaded.location);
  std::unique_ptr<EngineCoreClient> client;
  {
    config.load.progress = std::make_shared<LoadProgress>();
    const LoadingStatus status(loaded.location.short_name(), config.load.progress);
    client = config.parallel.data_parallel_size > 1 ? MakeDataParallelClient(config, MakeExecutor)
                                                    : MakeThreadClient(config, MakeExecutor, std::move(trace));
    loaded.tokenizer = tokenizer.get();
  }
  if (!tokenizer_warning.empty()) PrintWarning(tokenizer_warning);
  if (const std::string& failure = client->ready().load_report.failure; !failure.empty()) PrintWarning(failure);
  loaded.engine = std::make_unique<LLMEngine>(config, loaded.tokenizer, std::move(client));
  loaded.reasoning_format = ChooseReasoningFormat(settings, loaded.renderer.get(), loaded.tokenizer);
  loaded.engine->SetReasoningFormat(loaded.reasoning_format);
  const int64_t requested = config.model.max_model_len;
  if (loaded.engine->max_model_len() < requested) {
    PrintWarning("the KV cache holds only " + std::to_string(loaded.engine->max_model_len()) + " of " +
                 std::to_string(requested) + " tokens of context; --kv-cache-memory sets its size");
  }
  if (!settings.Switch("ephemeral")) NoteUse(loaded.location);
  loaded.load_time = std::chrono::steady_clock::now() - start;
  EnterMainLoop();
  loaded.publisher =
      std::make_unique<LivePublisher>(std::string(CommandInfoOf(settings.command).name), loaded.location.short_name(),
                                      *loaded.engine, loaded.tokenizer, settings.Switch("publish"));
  return loaded;
}

}  // namespace vllm::app
