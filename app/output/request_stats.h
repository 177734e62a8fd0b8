// What --stats, /stats and "timings" say of one request.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/config/vllm_config.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/load_report.h"
#include "engine/request/request_output.h"
#include "engine/request/scheduler_stats.h"
#include "kernels/threading/cpu_topology.h"

namespace vllm {

struct RequestStats {
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  RequestMetrics metrics;
  double load_seconds = 0.0;

  double prefill_tokens_per_second() const;
  double decode_tokens_per_second() const;
};

// One line.
std::string RequestStatsText(const RequestStats& stats);
// {"load_ms","ttft_ms","prefill_tps","decode_tps","total_ms"}
nlohmann::ordered_json TimingsJson(const RequestStats& stats);
// One line on where the packed weights came from.
std::string WeightStatsText(const LoadReport& report);
// One line on the ranks: how many threads, and on which node of memory those run that are pinned to cores.
std::string RankStatsText(const ParallelConfig& parallel, const CpuTopology& cpus);
// One line on the engine since its start.
std::string EngineStatsText(const SchedulerStats& stats, int64_t num_kv_blocks);
// These three of a running engine on this machine.
std::array<std::string, 3> StatsLines(LLMEngine& engine);

}  // namespace vllm
