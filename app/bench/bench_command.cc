#include "app/bench/bench_command.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/bench/bench_compare.h"
#include "app/bench/dataset.h"
#include "app/model/load_model.h"
#include "app/output/json_text.h"
#include "app/output/request_stats.h"
#include "app/output/run_until_done.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

int64_t Count(const Settings& settings, std::string_view name, int64_t min_value) {
  const Flag* flag = FindFlag(name);
  const int64_t value = settings.Integer(name).value_or(std::stoll(std::string(flag->default_value)));
  if (value < min_value) {
    throw ConfigError("--" + std::string(name) + ": must be at least " + std::to_string(min_value) + " (" +
                      std::to_string(value) + ")");
  }
  return value;
}

struct Totals {
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
};

// Runs the rows of a dataset, or random prompts that share only a prefix. The answers to random prompts have the full
// requested length, because EOS is ignored.
class Workload {
 public:
  // Without a dataset, `dataset` is empty.
  Workload(const Settings& settings, LLMEngine& engine, std::vector<BatchRow> dataset)
      : engine_(engine),
        dataset_(std::move(dataset)),
        dataset_path_(settings.Text("dataset").value_or("")),
        input_len_(Count(settings, "input-len", 1)),
        prefix_len_(Count(settings, "prefix-len", 0)),
        generator_(settings.Unsigned("seed").value_or(0)) {
    params_.n = Count(settings, "n", 1);
    params_.max_tokens = Count(settings, "output-len", 1);
    params_.ignore_eos = true;
    params_.detokenize = engine.tokenizer() != nullptr;
    params_.output_kind = RequestOutputKind::kFinalOnly;
    for (BatchRow& row : dataset_) {
      row.params.n = params_.n;
      row.params.max_tokens = params_.max_tokens;
      row.params.detokenize = params_.detokenize;
      row.params.output_kind = params_.output_kind;
    }
    if (!dataset_.empty()) return;
    // Clamped so that the sum does not overflow.
    const int64_t max_length = std::numeric_limits<int32_t>::max();
    const int64_t length = prefix_len_ > max_length || input_len_ > max_length || *params_.max_tokens > max_length
                               ? max_length
                               : prefix_len_ + input_len_ + *params_.max_tokens;
    if (length > engine.max_model_len()) {
      throw ConfigError("bench: --prefix-len, --input-len and --output-len together exceed the context (" +
                        std::to_string(length) + ", limit " + std::to_string(engine.max_model_len()) + ")");
    }
    prefix_ = RandomTokens(prefix_len_);
  }

  Totals Run(int64_t num_prompts) {
    for (int64_t i = 0; i < num_prompts; ++i) AddRequest();
    Totals totals;
    RunCallbacks callbacks;
    callbacks.on_outputs = [&](const std::vector<RequestOutput>& outputs) {
      for (const RequestOutput& output : outputs) {
        if (!output.finished) continue;
        if (output.rejected) throw RequestError("bench: " + output.error);
        totals.num_prompt_tokens += static_cast<int64_t>(output.prompt_token_ids.size());
        for (const CompletionOutput& completion : output.outputs) {
          if (completion.finish_reason == FinishReason::kError) throw RequestError("bench: " + output.error);
          totals.num_output_tokens += static_cast<int64_t>(completion.token_ids.size());
        }
      }
    };
    RunUntilDone(engine_, callbacks);
    return totals;
  }

  // Begins to count drafts.
  void StartMeasurement() { drafts_before_ = engine_.stats().spec_decoding; }
  // Returns the drafts since StartMeasurement.
  SpecDecodingStats Drafts() const { return engine_.stats().spec_decoding.Since(drafts_before_); }

  // Returns the workload's prompts and lengths, which are part of the results.
  Json Describe() const {
    Json json;
    if (!dataset_.empty()) {
      json["dataset"] = dataset_path_;
      json["output_len"] = *params_.max_tokens;
      return json;
    }
    json["input_len"] = input_len_;
    json["output_len"] = *params_.max_tokens;
    json["prefix_len"] = prefix_len_;
    return json;
  }

 private:
  void AddRequest() {
    const std::string id = "bench-" + std::to_string(next_request_);
    const auto index = static_cast<size_t>(next_request_++);
    if (dataset_.empty()) {
      std::vector<int32_t> prompt = prefix_;
      const std::vector<int32_t> suffix = RandomTokens(input_len_);
      prompt.insert(prompt.end(), suffix.begin(), suffix.end());
      engine_.AddRequest(id, std::move(prompt), params_);
      return;
    }
    const BatchRow& row = dataset_[index % dataset_.size()];
    try {
      engine_.AddRequest(id, row.prompt, row.params, row.options);
    } catch (const RequestError& error) {
      throw RequestError("--dataset " + dataset_path_ + ": line " + std::to_string(row.id.line) + ": " + error.what());
    }
  }

  std::vector<int32_t> RandomTokens(int64_t count) {
    std::vector<int32_t> ids(static_cast<size_t>(count));
    const auto vocab_size = static_cast<uint64_t>(engine_.config().model.vocab_size);
    for (int32_t& id : ids) id = static_cast<int32_t>(generator_() % vocab_size);
    return ids;
  }

  LLMEngine& engine_;
  std::vector<BatchRow> dataset_;
  std::string dataset_path_;
  SamplingParams params_;
  int64_t input_len_;
  int64_t prefix_len_;
  int64_t next_request_ = 0;
  std::mt19937_64 generator_;
  std::vector<int32_t> prefix_;
  SpecDecodingStats drafts_before_;
};

// Adds what was drafted, if anything was.
void AddDrafts(const SpecDecodingStats& drafts, std::string& text, Json& json) {
  if (drafts.Total().num_draft_tokens == 0) return;
  text += SpeculationText(drafts) + "\n";
  json["speculation"] = SpeculationJson(drafts);
}

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Interpolates linearly between the closest ranks, like numpy.percentile.
double Percentile(std::vector<double> sorted, double percent) {
  std::sort(sorted.begin(), sorted.end());
  const double rank = percent / 100.0 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Json RunLatency(const Settings& settings, Workload& workload, std::string& text) {
  const int64_t batch_size = Count(settings, "batch-size", 1);
  const int64_t num_warmup = Count(settings, "num-iters-warmup", 0);
  const int64_t num_iters = Count(settings, "num-iters", 1);
  Totals totals;
  for (int64_t i = 0; i < num_warmup; ++i) workload.Run(batch_size);
  workload.StartMeasurement();
  std::vector<double> latencies;
  for (int64_t i = 0; i < num_iters; ++i) {
    const Clock::time_point start = Clock::now();
    totals = workload.Run(batch_size);
    latencies.push_back(SecondsSince(start));
  }
  const double average =
      std::accumulate(latencies.begin(), latencies.end(), 0.0) / static_cast<double>(latencies.size());
  std::array<char, 96> line{};
  std::snprintf(line.data(), line.size(), "Avg latency: %.6f seconds\n", average);
  text = line.data();
  Json percentiles;
  for (const int percent : {10, 25, 50, 75, 90, 99}) {
    const double value = Percentile(latencies, percent);
    std::snprintf(line.data(), line.size(), "%d%% percentile latency: %.6f seconds\n", percent, value);
    text += line.data();
    percentiles[std::to_string(percent)] = value;
  }
  Json json = workload.Describe();
  json["batch_size"] = batch_size;
  json["avg_latency"] = average;
  json["tokens_per_second"] =
      static_cast<double>(totals.num_prompt_tokens + totals.num_output_tokens) / Percentile(latencies, 50.0);
  json["latencies"] = latencies;
  json["percentiles"] = std::move(percentiles);
  AddDrafts(workload.Drafts(), text, json);
  return json;
}

Json RunThroughput(const Settings& settings, Workload& workload, std::string& text) {
  const int64_t num_prompts = Count(settings, "num-prompts", 1);
  workload.StartMeasurement();
  const Clock::time_point start = Clock::now();
  const Totals totals = workload.Run(num_prompts);
  const double seconds = SecondsSince(start);
  const auto total_tokens = static_cast<double>(totals.num_prompt_tokens + totals.num_output_tokens);
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(),
                "Throughput: %.2f requests/s, %.2f total tokens/s, %.2f output tokens/s\n"
                "Total num prompt tokens:  %lld\nTotal num output tokens:  %lld\n",
                static_cast<double>(num_prompts) / seconds, total_tokens / seconds,
                static_cast<double>(totals.num_output_tokens) / seconds,
                static_cast<long long>(totals.num_prompt_tokens), static_cast<long long>(totals.num_output_tokens));
  text = line.data();
  Json json = workload.Describe();
  json["elapsed_time"] = seconds;
  json["num_requests"] = num_prompts;
  json["total_num_tokens"] = totals.num_prompt_tokens + totals.num_output_tokens;
  json["requests_per_second"] = static_cast<double>(num_prompts) / seconds;
  json["tokens_per_second"] = total_tokens / seconds;
  json["output_tokens_per_second"] = static_cast<double>(totals.num_output_tokens) / seconds;
  AddDrafts(workload.Drafts(), text, json);
  return json;
}

}  // namespace

int BenchCommand(const Settings& settings) {
  if (settings.arguments.size() != 1 || (settings.arguments[0] != "latency" && settings.arguments[0] != "throughput")) {
    throw ConfigError("bench: the argument must be latency or throughput");
  }
  Json before;
  if (const auto path = settings.Text("compare")) before = ReadBenchResults(*path);
  const bool is_latency = settings.arguments[0] == "latency";
  const std::optional<std::string> dataset_path = settings.Text("dataset");
  const std::string dataset_text = dataset_path ? ReadDataset(settings) : "";
  LoadedModel model = LoadModel(settings, {.tokenizer_required = dataset_path.has_value()});
  std::vector<BatchRow> dataset;
  if (dataset_path) {
    // A latency run may take all rows.
    const int64_t max_rows = is_latency ? std::numeric_limits<int64_t>::max() : Count(settings, "num-prompts", 1);
    dataset = ParseDataset(dataset_text, *dataset_path, max_rows, model);
  }
  Workload workload(settings, *model.engine, std::move(dataset));
  std::string text;
  Json json = is_latency ? RunLatency(settings, workload, text) : RunThroughput(settings, workload, text);
  PrintEngineWarning(*model.engine);
  if (const auto path = settings.Text("output-json")) {
    std::ofstream file(*path);
    file << DumpJson(json) << '\n';
    file.close();
    if (!file) throw ResourceError("writing " + *path + ": cannot create or write the file");
  }
  if (!before.is_null()) {
    const Json comparison = CompareBenchResults(json, before);
    text += DescribeComparison(comparison, *settings.Text("compare"));
    json["compared"] = comparison;
  }
  if (settings.Switch("json")) {
    StandardOutput().WriteLine(SafeJson(DumpJson(json)));
  } else {
    StandardOutput().Write(SafeText(text));
  }
  return 0;
}

}  // namespace vllm::app
