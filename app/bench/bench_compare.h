// The figures of two runs of `vllmcli bench` side by side. Any thread.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace vllm {

// Reads what an earlier run wrote with --output-json. Throws ConfigError when `path` cannot be read or is something
// else.
nlohmann::ordered_json ReadBenchResults(const std::string& path);

// {"avg_latency": {"now": 1.2, "before": 1.5, "ratio": 0.8}, ...} for every figure that both have; percentiles as
// "percentiles.50".
nlohmann::ordered_json CompareBenchResults(const nlohmann::ordered_json& now, const nlohmann::ordered_json& before);

// A line for each figure of CompareBenchResults.
std::string DescribeComparison(const nlohmann::ordered_json& comparison, const std::string& path);

}  // namespace vllm
