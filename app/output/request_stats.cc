#include "app/output/request_stats.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/size_text.h"
#include "app/terminal/progress_line.h"
#include "kernels/threading/thread_pool.h"

namespace vllm::app {
namespace {

double Rate(int64_t count, Seconds time) { return time > Seconds(0) ? static_cast<double>(count) / time.count() : 0.0; }

double Milliseconds(Seconds time) { return time.count() * 1e3; }

double Rounded(double value) { return std::round(value * 1000.0) / 1000.0; }

// "64 of 80 drafted tokens accepted (80 %)"
std::string AcceptedText(int64_t num_accepted, int64_t num_drafted) {
  return std::to_string(num_accepted) + " of " + std::to_string(num_drafted) + " drafted tokens accepted (" +
         PercentText(static_cast<double>(num_accepted) / static_cast<double>(num_drafted)) + ")";
}

}  // namespace

double RequestStats::prefill_tokens_per_second() const {
  return Rate(num_prompt_tokens - num_cached_tokens, metrics.prefill_time());
}

double RequestStats::decode_tokens_per_second() const {
  return Rate(metrics.num_generation_tokens - 1, metrics.decode_time());
}

std::string RequestStatsText(const RequestStats& stats) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(),
                "prompt %lld tokens (%lld cached) at %.1f tokens/s, answer %lld tokens at %.1f tokens/s, "
                "first token after %.0f ms, total %.0f ms, load %.2f s",
                static_cast<long long>(stats.num_prompt_tokens), static_cast<long long>(stats.num_cached_tokens),
                stats.prefill_tokens_per_second(), static_cast<long long>(stats.metrics.num_generation_tokens),
                stats.decode_tokens_per_second(), Milliseconds(stats.metrics.time_to_first_token()),
                Milliseconds(stats.metrics.e2e_latency()), stats.load_time.count());
  const RequestMetrics& metrics = stats.metrics;
  if (metrics.num_draft_tokens == 0) return text.data();
  return text.data() + (", " + AcceptedText(metrics.num_accepted_draft_tokens, metrics.num_draft_tokens));
}

std::string ShortStatsText(const RequestStats& stats, int64_t num_context_tokens, int64_t max_model_len) {
  const double cached_share = stats.num_prompt_tokens > 0 ? static_cast<double>(stats.num_cached_tokens) /
                                                                static_cast<double>(stats.num_prompt_tokens)
                                                          : 0.0;
  // The first token has no rate.
  const double rate = stats.decode_tokens_per_second();
  return (rate > 0 ? FixedText(rate, 1) + " tokens/s · " : "") + PercentText(cached_share) + " cached · context " +
         GroupedText(num_context_tokens) + "/" + GroupedText(max_model_len);
}

nlohmann::ordered_json TimingsJson(const RequestStats& stats) {
  nlohmann::ordered_json json;
  json["load_ms"] = Rounded(Milliseconds(stats.load_time));
  json["ttft_ms"] = Rounded(Milliseconds(stats.metrics.time_to_first_token()));
  json["prefill_tps"] = Rounded(stats.prefill_tokens_per_second());
  json["decode_tps"] = Rounded(stats.decode_tokens_per_second());
  json["total_ms"] = Rounded(Milliseconds(stats.metrics.e2e_latency()));
  return json;
}

std::string WeightStatsText(const LoadReport& report) {
  const auto megabytes = [](int64_t bytes) { return std::to_string((bytes + 500000) / 1000000) + " MB"; };
  std::string text = "weights: ";
  if (report.mapped_bytes > 0) text += megabytes(report.mapped_bytes) + " from the packed cache, ";
  if (report.written_bytes > 0) text += "packed, " + megabytes(report.written_bytes) + " written to the packed cache, ";
  if (report.mapped_bytes + report.written_bytes == 0) text += "packed, ";
  text.resize(text.size() - 2);
  if (!report.rejection.empty()) text += " (" + report.rejection + ")";
  return text;
}

std::string RankStatsText(const ParallelConfig& parallel, const kernels::CpuTopology& cpus) {
  std::string text = "ranks: ";
  if (parallel.data_parallel_size > 1) text += CountedText(parallel.data_parallel_size, "engine") + " of ";
  text +=
      CountedText(parallel.tensor_parallel_size, "rank") + " of " + CountedText(parallel.threads_per_rank, "thread");
  if (parallel.world_size() == 1 || !parallel.pin_cores) return text;
  const char* separator = ", on NUMA nodes ";
  for (const std::vector<int>& rank : cpus.Place(parallel.world_size(), parallel.threads_per_rank)) {
    std::set<int> nodes;
    for (const int cpu : rank) nodes.insert(cpus.NodeOf(cpu));
    text += separator;
    for (const int node : nodes) text += (node == *nodes.begin() ? "" : "+") + std::to_string(node);
    separator = ", ";
  }
  return text;
}

std::string EngineStatsText(const SchedulerStats& stats, int64_t num_kv_blocks) {
  const KVTransferStats& kv = stats.kv_transfer;
  std::string transfers;
  if (kv.num_loaded_tokens + kv.num_saved_tokens > 0) {
    transfers = ", KV cache on disk: " + CountedText(kv.num_loaded_tokens, "token") + " loaded, " +
                std::to_string(kv.num_saved_tokens) + " saved";
  }
  return "engine: " + std::to_string(stats.step) + " steps, " + std::to_string(stats.num_preemptions) +
         " preemptions, prefix cache hit rate " + PercentText(stats.prefix_cache.HitRate()) + " (" +
         std::to_string(stats.prefix_cache.hits) + " of " + std::to_string(stats.prefix_cache.queries) +
         " tokens), KV cache usage " + PercentText(stats.kv_cache_usage) + " of " + std::to_string(num_kv_blocks) +
         " blocks" + transfers;
}

std::string SpeculationText(const SpecDecodingStats& stats) {
  if (stats.Total().num_draft_tokens == 0) return "";
  std::string text;
  for (size_t i = 0; i < stats.methods.size(); ++i) {
    const SpecDecodingStats::Method& method = stats.methods[i];
    if (method.num_drafts == 0) continue;
    text += text.empty() ? "speculation: " : "; ";
    text += std::string(ToString(static_cast<SpeculativeMethod>(i))) + ", " +
            AcceptedText(method.num_accepted_tokens, method.num_draft_tokens) + ", mean acceptance length " +
            FixedText(method.MeanAcceptanceLength(), 2);
  }
  return text;
}

nlohmann::ordered_json SpeculationJson(const SpecDecodingStats& stats) {
  auto json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < stats.methods.size(); ++i) {
    const SpecDecodingStats::Method& method = stats.methods[i];
    if (method.num_drafts == 0) continue;
    size_t num_positions = method.drafted.size();
    while (num_positions > 0 && method.drafted[num_positions - 1] == 0) --num_positions;
    nlohmann::ordered_json& member = json[std::string(ToString(static_cast<SpeculativeMethod>(i)))];
    member["drafts"] = method.num_drafts;
    member["draft_tokens"] = method.num_draft_tokens;
    member["accepted_tokens"] = method.num_accepted_tokens;
    member["mean_acceptance_length"] = Rounded(method.MeanAcceptanceLength());
    member["drafted_per_position"] = std::span(method.drafted).first(num_positions);
    member["accepted_per_position"] = std::span(method.accepted).first(num_positions);
  }
  return json;
}

std::vector<std::string> StatsLines(LLMEngine& engine) {
  std::vector<std::string> lines = {
      WeightStatsText(engine.client().ready().load_report),
      RankStatsText(engine.config().parallel, kernels::CpuTopology(kernels::UsableCpus())),
      EngineStatsText(engine.stats(), engine.config().cache.num_blocks)};
  if (std::string text = SpeculationText(engine.stats().spec_decoding); !text.empty()) lines.push_back(std::move(text));
  return lines;
}

}  // namespace vllm::app
