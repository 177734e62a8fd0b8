#include "app/cli/engine_options.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "app/cli/speculative_setting.h"
#include "app/cli/xdg.h"
#include "engine/config/errors.h"
#include "kernels/isa.h"

namespace vllm::app {
namespace {

constexpr int64_t kPackedCacheBytes = int64_t{16} << 30;

int64_t AtLeastOne(const Settings& settings, std::string_view name, int64_t default_value) {
  const std::optional<int64_t> value = settings.Integer(name);
  if (!value) return default_value;
  if (*value < 1) throw ConfigError("--" + std::string(name) + ": must be at least 1 (" + std::to_string(*value) + ")");
  return *value;
}

kernels::DType ParseDType(const std::string& name, kernels::DType default_dtype) {
  if (name == "float32") return kernels::DType::kFloat32;
  if (name == "float16") return kernels::DType::kFloat16;
  if (name == "bfloat16") return kernels::DType::kBFloat16;
  return default_dtype;
}

void SetQuantization(const std::string& name, QuantizationConfig& quantization) {
  if (name == "none") return;
  if (quantization.method != QuantizationMethod::kNone) {
    throw ConfigError("--quantization: cannot quantize a checkpoint that is already quantized with " +
                      std::string(ToString(quantization.method)) + " (requested: " + name + ")");
  }
  quantization.method = name == "int8" ? QuantizationMethod::kInt8 : QuantizationMethod::kInt4;
}

// Returns the value of --speculative-config if it is not set.
std::string DefaultSpeculativeConfig(const Settings& settings, LinearBackend backend) {
  // The random tokens of a benchmark often repeat, which says nothing about text. Drafts change the number of rows of a
  // step, and with that the results of OpenBLAS.
  const bool has_random_tokens = settings.command == Command::kBench && !settings.Has("dataset");
  return std::string(has_random_tokens || backend == LinearBackend::kOpenBlas ? "off" : kDefaultSpeculativeConfig);
}

}  // namespace

std::optional<kernels::KVDType> CacheDType(const Settings& settings) {
  const std::string name = settings.Text("kv-cache-dtype").value_or("auto");
  for (const kernels::KVDType dtype :
       {kernels::KVDType::kFloat32, kernels::KVDType::kBFloat16, kernels::KVDType::kFloat16, kernels::KVDType::kInt8}) {
    if (name == ToString(dtype)) return dtype;
  }
  return std::nullopt;
}

VllmConfig MakeVllmConfig(const Settings& settings, const ModelConfig& model) {
  VllmConfig config;
  config.model = model;
  config.model.dtype = ParseDType(settings.Text("dtype").value_or("auto"), model.checkpoint_dtype);
  SetQuantization(settings.Text("quantization").value_or("none"), config.model.quantization);
  config.model.max_model_len = AtLeastOne(settings, "max-model-len", config.model.max_model_len);
  config.cache.block_size = AtLeastOne(settings, "block-size", config.cache.block_size);
  config.cache.enable_prefix_caching = settings.Switch("enable-prefix-caching");
  config.cache.cache_dtype = CacheDType(settings);
  if (!config.cache.cache_dtype && settings.Text("dtype").value_or("auto") != "auto") {
    config.cache.cache_dtype = kernels::KVDTypeOf(config.model.dtype);
  }
  if (settings.Has("num-kv-blocks")) config.cache.num_blocks_override = AtLeastOne(settings, "num-kv-blocks", 0);
  config.cache.kv_cache_memory_bytes = settings.Size("kv-cache-memory");
  config.scheduler.max_num_batched_tokens =
      AtLeastOne(settings, "max-num-batched-tokens", config.scheduler.max_num_batched_tokens);
  config.scheduler.max_num_seqs = AtLeastOne(settings, "max-num-seqs", config.scheduler.max_num_seqs);
  config.scheduler.max_loras = AtLeastOne(settings, "max-loras", config.scheduler.max_loras);
  config.lora.max_cpu_loras = AtLeastOne(settings, "max-cpu-loras", config.lora.max_cpu_loras);
  config.lora.max_lora_rank = AtLeastOne(settings, "max-lora-rank", config.lora.max_lora_rank);
  config.scheduler.long_prefill_token_threshold = settings.Integer("long-prefill-token-threshold").value_or(0);
  config.scheduler.enable_chunked_prefill = settings.Switch("enable-chunked-prefill");
  config.structured_outputs.enable_in_reasoning = settings.Switch("enable-in-reasoning");
  config.structured_outputs.enable_jump_decoding = settings.Switch("enable-jump-decoding");
  config.scheduler.policy = settings.Text("scheduling-policy").value_or("fcfs") == "priority"
                                ? SchedulingPolicy::kPriority
                                : SchedulingPolicy::kFcfs;
  config.parallel.tensor_parallel_size = AtLeastOne(settings, "tensor-parallel-size", 1);
  config.parallel.data_parallel_size = AtLeastOne(settings, "data-parallel-size", 1);
  if (config.parallel.data_parallel_size > 1 && settings.Has("trace")) {
    throw ConfigError("--trace: cannot record " + std::to_string(config.parallel.data_parallel_size) +
                      " engines, because a trace is that of one scheduler; use --data-parallel-size 1");
  }
  config.parallel.threads_per_rank = settings.Integer("threads-per-rank").value_or(0);
  const std::string load_format = settings.Text("load-format").value_or("auto");
  if (load_format == "safetensors") config.load.load_format = LoadFormat::kSafetensors;
  if (load_format == "gguf") config.load.load_format = LoadFormat::kGguf;
  if (load_format == "dummy") config.load.load_format = LoadFormat::kDummy;
  config.load.packed_cache_bytes = settings.Size("packed-cache-size").value_or(kPackedCacheBytes);
  if (const std::string cache = CacheHome(); !cache.empty() && !settings.Switch("ephemeral")) {
    config.load.packed_cache_directory = cache + "/packed";
    config.load.kernel_variants_directory = cache + "/tiles";
  }
  config.max_output_memory_bytes = settings.Size("max-output-memory");
  if (settings.Text("logprobs-mode").value_or("") == "processed_logprobs") {
    config.logprobs_mode = LogprobsMode::kProcessedLogprobs;
  }
  config.max_logprobs = settings.Integer("max-logprobs").value_or(config.max_logprobs);
  if (settings.Text("linear-backend").value_or("native") == "openblas") {
    config.linear_backend = LinearBackend::kOpenBlas;
  }
  config.speculative = ParseSpeculativeConfig(
      settings.Text("speculative-config").value_or(DefaultSpeculativeConfig(settings, config.linear_backend)));
  config.isa = kernels::ParseIsa(settings.Text("isa").value_or("auto"));
  const std::vector<kernels::Isa> isas = kernels::AvailableIsas();
  if (config.isa && std::find(isas.begin(), isas.end(), *config.isa) == isas.end()) {
    throw ConfigError("isa: not supported by this machine (" + std::string(ToString(*config.isa)) + ")");
  }
  config.seed = ChooseSeed(settings);
  return config;
}

uint64_t ChooseSeed(const Settings& settings) {
  if (const auto seed = settings.Unsigned("seed")) return *seed;
  switch (settings.command) {
    case Command::kChat:
    case Command::kRun:
    case Command::kComplete: {
      std::random_device device;
      return (static_cast<uint64_t>(device()) << 32) | device();
    }
    default:
      return 0;
  }
}

}  // namespace vllm::app
