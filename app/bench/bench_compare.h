// Compares the results of two runs of `vllmcli bench`. Pure functions, except ReadBenchResults. Main thread.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace vllm::app {

// Reads the results that an earlier run wrote with --output-json. Throws ConfigError if `path` cannot be read or
// contains something else, and ResourceError if the process is out of resources.
nlohmann::ordered_json ReadBenchResults(const std::string& path);

// Returns {"avg_latency": {"now": 1.2, "before": 1.5, "ratio": 0.8}, ...} with one member for each number, outside of
// lists, that both results have. The member of a percentile is called "percentiles.50". There is no ratio if "before"
// is 0.
nlohmann::ordered_json CompareBenchResults(const nlohmann::ordered_json& now, const nlohmann::ordered_json& before);

// Describes the result of CompareBenchResults in a heading and one line per number. `path` is the file with the earlier
// results.
std::string DescribeComparison(const nlohmann::ordered_json& comparison, const std::string& path);

}  // namespace vllm::app
