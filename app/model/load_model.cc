#include "app/model/load_model.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "app/cli/engine_options.h"
#include "app/installed/find_model.h"
#include "app/installed/last_use.h"
#include "app/model/calibration/calibration_text.h"
#include "app/model/kv_disk_cache.h"
#include "app/model/loading_status.h"
#include "app/model/lora/lora_setting.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
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

namespace {

// Limits the KV cache of a draft model, whose requests are as long as those of the model but have small keys and
// values.
constexpr int64_t kDraftKVBytes = int64_t{512} << 20;

// Returns the configuration of the draft model's engine. `config` is that of the model.
std::shared_ptr<const VllmConfig> MakeDraftConfig(const VllmConfig& config, const ModelLocation& location) {
  auto draft = std::make_shared<VllmConfig>(config);
  draft->model = ReadModelConfig(location);
  draft->model.model = location.name;
  draft->model.dtype = draft->model.checkpoint_dtype;
  draft->model.max_model_len = std::min(draft->model.max_model_len, config.model.max_model_len);
  draft->speculative = {};
  draft->kv_disk_cache = {};
  draft->lora = {};
  draft->cache.num_blocks_override.reset();
  draft->cache.cache_dtype.reset();
  draft->cache.kv_cache_memory_bytes =
      std::min(kDraftKVBytes, config.cache.kv_cache_memory_bytes.value_or(kDraftKVBytes));
  draft->scheduler.long_prefill_token_threshold = 0;
  if (config.load.load_format != LoadFormat::kDummy) draft->load.load_format = LoadFormat::kAuto;
  draft->load.progress = nullptr;
  if (config.speculative.draft_tensor_parallel_size > 0) {
    draft->parallel.tensor_parallel_size = config.speculative.draft_tensor_parallel_size;
    draft->parallel.threads_per_rank = 0;
  }
  draft->Finalize();
  return draft;
}

// Throws ConfigError if a token means different texts in the two vocabularies, as then no draft would fit.
void CheckDraftVocabulary(const tokenizer::Tokenizer& own, const ModelLocation& draft) {
  const std::shared_ptr<const tokenizer::Tokenizer> other = LoadModelTokenizer(draft);
  const int32_t size = std::min(own.VocabSize(), other->VocabSize());
  for (int32_t id = 0; id < size; ++id) {
    if (own.IdToToken(id) == other->IdToToken(id)) continue;
    throw ConfigError("--speculative-config: model " + draft.name + ": has another vocabulary (token " +
                      std::to_string(id) + " differs)");
  }
}

}  // namespace

LoadedEngine LoadEngine(const Settings& settings, const LoadOptions& options) {
  const auto warn = [&](const std::string& text) { options.warn ? options.warn(text) : PrintWarning(text); };
  LoadedEngine loaded;
  loaded.location = LocateModel(settings);
  ModelConfig model = ReadModelConfig(loaded.location);
  model.model = loaded.location.name;
  if (options.needs_generation && !model.can_generate) {
    throw ModelError("model " + Escape(loaded.location.name) + ": generates no text (" +
                     Escape(model.architecture, 60) + "); vllmcli embed, score and rerank use it");
  }
  if (options.adjust_model) options.adjust_model(loaded.location, model);
  loaded.config = MakeVllmConfig(settings, model);
  VllmConfig& config = loaded.config;
  config.parallel.num_processes = options.num_processes;
  config.parallel.num_local_processes = options.num_local_processes;
  config.Finalize();
  CheckCalibration(settings, config.model);
  config.lora = MakeLoRAConfig(settings, config.model, LocateAdapter);
  config.kv_disk_cache = MakeKVDiskCacheConfig(settings, loaded.location);
  if (config.cache.kv_cache_memory_bytes) *config.cache.kv_cache_memory_bytes /= options.num_local_processes;
  if (config.parallel.is_oversubscribed) {
    warn(std::to_string(config.parallel.num_threads()) + " threads share " +
         std::to_string(kernels::CpuTopology(kernels::UsableCpus()).num_threads_at_once()) +
         " CPUs, which is slow; lower --threads-per-rank, --tensor-parallel-size or --data-parallel-size");
  }
  if (const std::string warning = RopeWarning(config.model); !warning.empty()) warn(warning);
  std::optional<ModelLocation> draft;
  if (config.speculative.method == SpeculativeMethod::kDraftModel) {
    draft = FindModel(config.speculative.model, settings.Text("load-format") == "dummy" ? "dummy" : "auto");
    config.draft = MakeDraftConfig(config, *draft);
  }
  if (options.check_config) options.check_config(config);
  std::shared_ptr<TraceRecorder> trace;
  if (const auto path = settings.Text("trace")) trace = std::make_shared<TraceRecorder>(*path);
  // Load the tokenizer while the weights load, or after them if no thread can be started. If the address space is
  // limited, load the tokenizer first: loading both at once may exceed the limit, and the KV cache is sized by the
  // memory that the tokenizer and the weights leave.
  std::string tokenizer_warning;
  const auto load = [&]() -> std::shared_ptr<const tokenizer::Tokenizer> {
    const bool is_needed = options.tokenizer_required || ModelHasTokenizer(loaded.location);
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer = is_needed ? LoadModelTokenizer(loaded.location) : nullptr;
    tokenizer_warning = TokenizerWarning(loaded.location);
    return tokenizer;
  };
  std::future<std::shared_ptr<const tokenizer::Tokenizer>> tokenizer =
      kernels::AddressSpaceIsLimited() ? std::async(std::launch::deferred, load) : std::async(load);
  if (kernels::AddressSpaceIsLimited()) tokenizer.wait();
  loaded.renderer = LoadPromptRenderer(settings, loaded.location);
  std::shared_ptr<MeasuredCalibration> calibration;
  ExecutorFactory make_executor = MakeExecutor;
  const auto calibration_progress = std::make_shared<CalibrationProgress>();
  if (!settings.Text("calibration").value_or("").empty()) {
    loaded.tokenizer = tokenizer.get();
    calibration = MakeCalibration(settings, config, loaded.tokenizer.get(), calibration_progress);
    make_executor = [calibration](const VllmConfig& engine_config) {
      // The engine of a draft model has another configuration.
      const bool is_calibrated = engine_config.model.quantization.method == QuantizationMethod::kInt4;
      return is_calibrated ? MakeCalibratedExecutor(engine_config, *calibration) : MakeExecutor(engine_config);
    };
  }
  {
    config.load.progress = std::make_shared<LoadProgress>();
    const LoadingStatus status(loaded.location.short_name(), config.load.progress, calibration_progress);
    loaded.client = config.parallel.data_parallel_size > 1 ? MakeDataParallelClient(config, make_executor)
                                                           : MakeThreadClient(config, make_executor, std::move(trace));
    if (tokenizer.valid()) loaded.tokenizer = tokenizer.get();
  }
  if (calibration != nullptr) calibration->Release();
  if (draft && loaded.tokenizer != nullptr && ModelHasTokenizer(*draft))
    CheckDraftVocabulary(*loaded.tokenizer, *draft);
  if (!tokenizer_warning.empty()) warn(tokenizer_warning);
  if (const std::string& failure = loaded.client->ready().load_report.failure; !failure.empty()) warn(failure);
  const EngineCoreReadyInfo& ready = loaded.client->ready();
  if (!ready.kv_disk_cache_failure.empty() && (ready.kv_disk_cache_has_fault || settings.Has("kv-disk-cache"))) {
    warn("--kv-disk-cache: off, because " + ready.kv_disk_cache_failure);
  }
  loaded.reasoning_format = ChooseReasoningFormat(settings, loaded.renderer.get(), loaded.tokenizer);
  if (options.extend_client) loaded.client = options.extend_client(config, std::move(loaded.client));
  return loaded;
}

LoadedModel LoadModel(const Settings& settings, const LoadOptions& given_options) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded;
  LoadOptions options = given_options;
  options.check_config = [&](const VllmConfig& config) {
    if (given_options.check_config) given_options.check_config(config);
    SamplingDefaults sampling = MakeSamplingDefaults(settings, ReadGenerationConfig(LocateModel(settings)));
    loaded.sampling_params = std::move(sampling.params);
    loaded.sampling_values = std::move(sampling.values);
    CheckSamplingDefaults(loaded.sampling_params, config);
  };
  LoadedEngine engine = LoadEngine(settings, options);
  loaded.location = std::move(engine.location);
  loaded.tokenizer = std::move(engine.tokenizer);
  loaded.renderer = std::move(engine.renderer);
  loaded.reasoning_format = std::move(engine.reasoning_format);
  loaded.engine = std::make_unique<LLMEngine>(engine.config, loaded.tokenizer, std::move(engine.client));
  loaded.engine->SetReasoningFormat(loaded.reasoning_format);
  const int64_t requested = engine.config.model.max_model_len;
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
