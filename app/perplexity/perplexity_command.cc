#include "app/perplexity/perplexity_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/model/load_model.h"
#include "app/output/json_text.h"
#include "app/output/size_text.h"
#include "app/perplexity/chunk_plan.h"
#include "app/perplexity/chunk_runner.h"
#include "app/perplexity/score_sums.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/frontend/output_memory.h"
#include "kernels/threading/available_memory.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxTextBytes = size_t{256} << 20;

// Shows how far the measurement is: on a terminal in one line, elsewhere as a line every 30 s.
class Progress {
 public:
  explicit Progress(int64_t num_chunks) : num_chunks_(num_chunks) {}

  void Update(int64_t num_chunks_done, const MeanSums& nll) {
    if (line_.enabled() ? !line_.IsDue() : !IsPlainDue()) return;
    std::string text = "perplexity: " + GroupedText(num_chunks_done) + " of " + GroupedText(num_chunks_) + " chunks";
    if (nll.count > 0) {
      std::array<char, 350> value{};
      std::snprintf(value.data(), value.size(), ", %.4f so far", nll.ExpMean().value);
      text += value.data();
    }
    if (line_.enabled()) {
      line_.Show(text);
    } else {
      PrintStatus(text);
    }
  }
  void Clear() { line_.Clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPlainInterval{30};

  bool IsPlainDue() {
    if (Clock::now() < due_) return false;
    due_ = Clock::now() + kPlainInterval;
    return true;
  }

  int64_t num_chunks_;
  ProgressLine line_{std::chrono::milliseconds(300)};
  Clock::time_point due_ = Clock::now() + kPlainInterval;
};

std::string ReadText(const std::string& path) {
  std::string text = ReadFileOrStdin(path, kMaxTextBytes);
  const std::string name = path == "-" ? "standard input" : Escape(path);
  if (text.empty()) throw ConfigError("perplexity: " + name + ": is empty");
  // Invalid bytes would become U+FFFD, and the result would be that of another text.
  for (size_t at = 0; at < text.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(text, at);
    if (step.kind != tokenizer::Utf8Step::Kind::kValid) {
      throw ConfigError("perplexity: " + name + ": is not valid UTF-8 (at byte " + std::to_string(at) + ")");
    }
    at += step.length;
  }
  // As llama.cpp does.
  if (text.back() == '\n') text.pop_back();
  return text;
}

ChunkPlan PlanOf(const Settings& settings) {
  ChunkPlan plan;
  plan.context = settings.Integer("context").value_or(plan.context);
  if (plan.context < ChunkPlan::kMinContext) {
    throw ConfigError("--context: must be at least " + std::to_string(ChunkPlan::kMinContext) + " (" +
                      std::to_string(plan.context) + ")");
  }
  plan.stride = settings.Integer("stride").value_or(0);
  if (settings.Has("stride") && (plan.stride < 1 || plan.stride >= plan.context)) {
    throw ConfigError("--stride: must be at least 1 and less than --context, " + std::to_string(plan.context) + " (" +
                      std::to_string(plan.stride) + ")");
  }
  return plan;
}

// Throws ConfigError if the chunks are longer than the context of the model.
void CheckContext(const ModelLocation& location, const ModelConfig& model, const ChunkPlan& plan) {
  if (plan.context <= model.max_model_len) return;
  throw ConfigError("--context: larger than the context of model " + Escape(location.name) + " (" +
                    std::to_string(plan.context) + ", limit " + std::to_string(model.max_model_len) + ")");
}

void Set(Settings& settings, std::string_view name, std::string value) {
  settings.Set(*FindFlag(name), {std::move(value)}, SettingSource::kCommandLine, "--" + std::string(name));
}

bool HasReference(const Settings& settings) {
  return settings.Has("kl-reference") || settings.Has("kl-reference-quantization");
}

// Returns the settings of the engine. A comparison runs one chunk at a time.
Settings EngineSettings(const Settings& given, const ChunkPlan& plan) {
  Settings settings = given;
  Set(settings, "max-model-len", std::to_string(plan.context));
  Set(settings, "kv-disk-cache", "off");
  Set(settings, "speculative-config", "off");
  // Requests with prompt_logprobs do not read the cache.
  Set(settings, "enable-prefix-caching", "false");
  Set(settings, "max-logprobs", "-1");
  if (HasReference(given)) {
    Set(settings, "max-num-seqs", "1");
  } else if (!given.Has("max-num-seqs")) {
    // As many chunks as a step has tokens for, so that the KV cache takes no more memory than is useful.
    constexpr int64_t kDefaultTokensPerStep = 2048;
    const int64_t num_tokens = given.Integer("max-num-batched-tokens").value_or(kDefaultTokensPerStep);
    Set(settings, "max-num-seqs", std::to_string(std::clamp<int64_t>(num_tokens / plan.context + 1, 2, 128)));
  }
  return settings;
}

// Returns the settings of the reference. They are those of the model except for its name and its quantization.
Settings ReferenceSettings(const Settings& engine_settings) {
  Settings settings = engine_settings;
  if (const auto model = settings.Text("kl-reference")) {
    Set(settings, "model", *model);
    // The revision and the format belong to --model.
    if (settings.Has("revision")) Set(settings, "revision", "");
    Set(settings, "load-format", "auto");
  }
  Set(settings, "quantization", settings.Text("kl-reference-quantization").value_or("none"));
  if (settings.Text("quantization") != "int4") Set(settings, "calibration", "");
  Set(settings, "publish", "false");
  return settings;
}

// Throws ConfigError if a token id means different tokens in the two models.
void CheckVocabulary(const tokenizer::Tokenizer& own, const ModelConfig& model, const ModelLocation& location) {
  const std::string what = "--kl-reference: model " + Escape(location.name) + ": has another vocabulary (";
  const ModelConfig reference = ReadModelConfig(location);
  if (reference.vocab_size != model.vocab_size) {
    throw ConfigError(what + std::to_string(reference.vocab_size) + " tokens, not " + std::to_string(model.vocab_size) +
                      ")");
  }
  if (!ModelHasTokenizer(location)) return;
  const std::shared_ptr<const tokenizer::Tokenizer> other = LoadModelTokenizer(location);
  for (int32_t id = 0; id < std::max(own.VocabSize(), other->VocabSize()); ++id) {
    if (own.IdToToken(id) != other->IdToToken(id))
      throw ConfigError(what + "token " + std::to_string(id) + " differs)");
  }
}

// Returns the most bytes that the output of an engine may take for a chunk with the distributions of all positions.
int64_t DistributionBytes(const ChunkPlan& plan, int64_t vocab_size) {
  return EstimateOutputMemory(ChunkRunner::Params(-1), plan.context - 1, vocab_size).total_bytes();
}

// Throws ResourceError if the distributions of a chunk do not fit in the memory that the models have left.
void CheckMemory(const ChunkPlan& plan, int64_t vocab_size) {
  const int64_t num_counted = plan.context - plan.FirstCounted();
  // Each engine keeps the buffers of its last output.
  const int64_t bytes =
      2 * DistributionBytes(plan, vocab_size) + num_counted * vocab_size * static_cast<int64_t>(sizeof(float));
  const kernels::AvailableMemory available = kernels::ReadAvailableMemory();
  if (bytes <= available.bytes) return;
  throw ResourceError("perplexity: comparing chunks of " + std::to_string(plan.context) + " tokens may take " +
                      SizeText(bytes) + ", and " + SizeText(available.bytes) + " are left under " + available.bound +
                      "; a smaller --context takes less");
}

// Loads the reference. A ConfigError says that it is about the reference, because a message such as "--quantization:
// ..." names a flag that both models have.
LoadedModel LoadReference(const Settings& settings) {
  try {
    return LoadModel(settings);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("the reference of --kl-reference: ") + error.what(), error.hint());
  }
}

std::string Format(const char* format, const Estimate& estimate, double scale = 1) {
  std::array<char, 700> text{};  // enough for two of the largest numbers
  std::snprintf(text.data(), text.size(), format, estimate.value * scale, estimate.uncertainty * scale);
  return text.data();
}

Json EstimateJson(const Estimate& estimate) {
  return {{"value", estimate.value}, {"uncertainty", estimate.uncertainty}};
}

// Returns the perplexity line, and adds its fields to `json`.
std::string Describe(const ChunkPlan& plan, int64_t num_chunks, const MeanSums& nll, Json& json) {
  const Estimate perplexity = nll.ExpMean();
  json["perplexity"] = perplexity.value;
  json["uncertainty"] = perplexity.uncertainty;
  json["mean_nll"] = nll.Mean().value;
  json["num_tokens"] = nll.count;
  json["num_chunks"] = num_chunks;
  json["context"] = plan.context;
  json["stride"] = plan.stride > 0 ? Json(plan.stride) : Json();
  std::string text = Format("perplexity %.4f ± %.4f (", perplexity) + std::to_string(nll.count) + " tokens, " +
                     std::to_string(num_chunks) + (num_chunks == 1 ? " chunk of " : " chunks of ") +
                     std::to_string(plan.context);
  if (plan.stride > 0) text += ", stride " + std::to_string(plan.stride);
  return text + ")\n";
}

// Returns the lines that compare the model with the reference, and adds their fields to `json`.
std::string DescribeComparison(const ComparisonSums& sums, Json& json) {
  const Estimate reference = sums.reference_nll.ExpMean();
  const Estimate kl = sums.kl.Mean();
  const Estimate same_top = sums.same_top.Mean();
  const Estimate ratio = sums.PerplexityRatio();
  json["reference_perplexity"] = EstimateJson(reference);
  json["perplexity_ratio"] = EstimateJson(ratio);
  json["kl_divergence"] = EstimateJson(kl);
  json["max_kl_divergence"] = sums.max_kl;
  json["same_top_token"] = EstimateJson(same_top);
  return Format("reference perplexity %.4f ± %.4f\n", reference) + Format("perplexity ratio %.6f ± %.6f\n", ratio) +
         Format("KL divergence %.6f ± %.6f", kl) + Format(" (largest %.6f)\n", {sums.max_kl, 0}) +
         Format("same most probable token %.3f %% ± %.3f %%\n", same_top, 100);
}

}  // namespace

int PerplexityCommand(const Settings& given) {
  if (given.arguments.size() != 1) {
    throw ConfigError("perplexity: needs one text file (" + std::to_string(given.arguments.size()) + " given)",
                      "vllmcli perplexity FILE -m MODEL, or - for standard input");
  }
  const std::string& path = given.arguments[0];
  ChunkPlan plan = PlanOf(given);
  std::string text = ReadText(path);
  const ModelLocation location = LocateModel(given);
  const ModelConfig config = ReadModelConfig(location);
  CheckContext(location, config, plan);
  Settings settings = EngineSettings(given, plan);
  std::optional<Settings> reference_settings;
  if (HasReference(given)) {
    const int64_t bytes = DistributionBytes(plan, config.vocab_size);
    Set(settings, "max-output-memory", std::to_string(bytes));
    reference_settings = ReferenceSettings(settings);
  }
  // The text is checked before the weights are loaded, which may take long.
  std::vector<int32_t> tokens;
  {
    const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = LoadModelTokenizer(location);
    if (reference_settings && given.Has("kl-reference")) {
      const ModelLocation reference = LocateModel(*reference_settings);
      CheckContext(reference, ReadModelConfig(reference), plan);
      CheckVocabulary(*tokenizer, config, reference);
    }
    plan.bos_token_id = BosTokenOf(*tokenizer);
    tokens = tokenizer->Encode(text, /*add_special_tokens=*/true, /*parse_special=*/false);
  }
  std::string().swap(text);
  const int64_t num_chunks = plan.NumChunks(static_cast<int64_t>(tokens.size()));
  if (num_chunks == 0) {
    throw ConfigError("perplexity: " + (path == "-" ? "standard input" : Escape(path)) + ": is shorter than " +
                          (plan.stride > 0 ? "a chunk and one token" : "one chunk") + " (" +
                          std::to_string(tokens.size()) + " of at least " + std::to_string(plan.MinTokens()) +
                          " tokens)",
                      "--context sets the length of a chunk");
  }

  const LoadedModel model = LoadModel(settings);
  Json json;
  json["model"] = location.name;
  std::string result;
  if (reference_settings) {
    const LoadedModel reference = LoadReference(*reference_settings);
    CheckMemory(plan, config.vocab_size);
    Progress progress(num_chunks);
    const ComparisonSums sums = Compare(*model.engine, *reference.engine, plan, tokens,
                                        [&](int64_t num_done, const MeanSums& nll) { progress.Update(num_done, nll); });
    progress.Clear();
    result = Describe(plan, num_chunks, sums.nll, json);
    json["reference"] = reference.location.name;
    result += DescribeComparison(sums, json);
  } else {
    Progress progress(num_chunks);
    const MeanSums nll = MeasurePerplexity(
        *model.engine, plan, tokens, [&](int64_t num_done, const MeanSums& sums) { progress.Update(num_done, sums); });
    progress.Clear();
    result = Describe(plan, num_chunks, nll, json);
  }
  PrintEngineWarning(*model.engine);
  if (given.Switch("json")) {
    StandardOutput().WriteLine(SafeJson(DumpJson(json)));
  } else {
    StandardOutput().Write(SafeText(result));
  }
  return 0;
}

}  // namespace vllm::app
