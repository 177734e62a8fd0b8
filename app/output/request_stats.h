// The lines that --stats and /stats print, and the "timings" of JSON results. Pure functions; any thread, except
// StatsLines, which reads the engine: main thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/config/vllm_config.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/load_report.h"
#include "engine/request/request_output.h"
#include "engine/request/scheduler_stats.h"
#include "kernels/threading/cpu_topology.h"

namespace vllm::app {

struct RequestStats {
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  RequestMetrics metrics;
  Seconds load_time{0};

  // Counts the prompt tokens that were not cached. Returns 0 if the prefill time is 0.
  double prefill_tokens_per_second() const;
  // Counts the output tokens after the first. Returns 0 if the decode time is 0.
  double decode_tokens_per_second() const;
};

// Returns one line about a request. It mentions drafts if there were any.
std::string RequestStatsText(const RequestStats& stats);
// Returns "12.3 tokens/s · 83 % cached · context 412/1,024": the speed of the answer, the cached share of the prompt,
// and the tokens of the context that are in use.
std::string ShortStatsText(const RequestStats& stats, int64_t num_context_tokens, int64_t max_model_len);
// Returns {"load_ms","ttft_ms","prefill_tps","decode_tps","total_ms"}. A name ends with its unit: milliseconds, or
// tokens per second.
nlohmann::ordered_json TimingsJson(const RequestStats& stats);
// Returns one line about the source of the packed weights.
std::string WeightStatsText(const LoadReport& report);
// Returns one line about the ranks: their number of threads and, if several ranks are pinned to cores, their NUMA
// nodes.
std::string RankStatsText(const ParallelConfig& parallel, const kernels::CpuTopology& cpus);
// Returns one line about the engine since its start.
std::string EngineStatsText(const SchedulerStats& stats, int64_t num_kv_blocks);
// Returns one line about the drafts that the engine has verified since its start, or "" if there were none.
std::string SpeculationText(const SpecDecodingStats& stats);
// Returns an object with one member for each method that has drafted, such as {"ngram": {"drafts","draft_tokens",
// "accepted_tokens","mean_acceptance_length","drafted_per_position","accepted_per_position"}}. The lists end with the
// last position that was drafted; see SpecDecodingStats::kNumPositions.
nlohmann::ordered_json SpeculationJson(const SpecDecodingStats& stats);
// Returns WeightStatsText, RankStatsText and EngineStatsText of a running engine on this machine, and SpeculationText
// if it is not empty.
std::vector<std::string> StatsLines(LLMEngine& engine);

}  // namespace vllm::app
