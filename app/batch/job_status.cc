#include "app/batch/job_status.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "app/batch/job/batch_job.h"
#include "app/batch/job/job_identity.h"
#include "app/output/duration_text.h"
#include "app/output/json_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// The rows that finished in the last of these minutes give the speed.
constexpr uint32_t kSpeedSeconds = 600;

struct JobCounts {
  int64_t num_rows = 0;
  std::array<int64_t, kNumRowStatuses> by_status{};
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  uint32_t first_time = 0;
  uint32_t last_time = 0;
};

void Count(const JobEntry& entry, JobCounts& counts) {
  ++counts.num_rows;
  ++counts.by_status[static_cast<size_t>(entry.status)];
  counts.num_prompt_tokens += entry.num_prompt_tokens;
  counts.num_output_tokens += entry.num_output_tokens;
  if (counts.first_time == 0) counts.first_time = entry.time;
  counts.last_time = std::max(counts.last_time, entry.time);
}

}  // namespace

int BatchStatus(const Settings& settings, const std::string& output_path) {
  JobCounts all;
  std::optional<int64_t> total_rows;
  bool has_ended = false;
  int64_t size = 0;
  if (!std::filesystem::exists(JobPath(output_path))) {
    throw ConfigError("batch status " + output_path + ": there is no job file (" + JobPath(output_path) + ")",
                      "OUTPUT is the file that --output of a batch names");
  }
  ReadJob(
      JobPath(output_path),
      [&](const JobEntry& entry) {
        if (entry.kind == JobEntry::Kind::kRow) Count(entry, all);
        if (entry.kind == JobEntry::Kind::kInput) total_rows = entry.index;
        if (entry.kind != JobEntry::Kind::kInput) has_ended = entry.kind == JobEntry::Kind::kEnd;
      },
      size);
  // The time between two starts of a job is no work, so only the last rows give the speed.
  JobCounts recent;
  const uint32_t begin = all.last_time > kSpeedSeconds ? all.last_time - kSpeedSeconds : 0;
  ReadJob(
      JobPath(output_path),
      [&](const JobEntry& entry) {
        if (entry.kind == JobEntry::Kind::kRow && entry.time >= begin) Count(entry, recent);
      },
      size);
  const bool is_running = IsLocked(output_path);
  const double seconds = static_cast<double>(recent.last_time) - static_cast<double>(recent.first_time);
  const double rows_per_second = seconds > 0 ? static_cast<double>(recent.num_rows) / seconds : 0.0;
  const double tokens_per_second = seconds > 0 ? static_cast<double>(recent.num_output_tokens) / seconds : 0.0;
  std::optional<double> seconds_left;
  // A short job may end before its input has been counted.
  if (has_ended && !total_rows) total_rows = all.num_rows;
  if (!has_ended && total_rows && rows_per_second > 0) {
    seconds_left = static_cast<double>(std::max<int64_t>(*total_rows - all.num_rows, 0)) / rows_per_second;
  }
  const char* state = is_running ? "running" : has_ended ? "finished" : "interrupted";
  const int64_t num_failed = all.num_rows - all.by_status[0];
  if (settings.Switch("json")) {
    nlohmann::ordered_json json;
    json["state"] = state;
    json["rows"] = all.num_rows;
    json["total_rows"] = total_rows ? nlohmann::ordered_json(*total_rows) : nullptr;
    json["failed"] = num_failed;
    json["errors"] = nlohmann::ordered_json::object();
    for (size_t i = 1; i < all.by_status.size(); ++i) {
      if (all.by_status[i] > 0) json["errors"][RowStatusName(static_cast<RowStatus>(i))] = all.by_status[i];
    }
    json["prompt_tokens"] = all.num_prompt_tokens;
    json["output_tokens"] = all.num_output_tokens;
    json["rows_per_s"] = rows_per_second;
    json["output_tokens_per_s"] = tokens_per_second;
    json["time_left_s"] = seconds_left ? nlohmann::ordered_json(*seconds_left) : nullptr;
    StandardOutput().WriteLine(SafeJson(DumpJson(json)));
    return 0;
  }
  std::string text = std::string(state) + ": " + GroupedText(all.num_rows);
  if (total_rows) text += " of " + GroupedText(*total_rows);
  text += " rows done, " + GroupedText(num_failed) + " failed\n";
  for (size_t i = 1; i < all.by_status.size(); ++i) {
    if (all.by_status[i] == 0) continue;
    text += "  " + RowStatusName(static_cast<RowStatus>(i)) + ": " + GroupedText(all.by_status[i]) + "\n";
  }
  text += GroupedText(all.num_prompt_tokens) + " prompt and " + GroupedText(all.num_output_tokens) + " output tokens";
  if (seconds > 0) {
    text += "; " + FixedText(rows_per_second, 2) + " rows/s, " + FixedText(tokens_per_second, 1) + " output tokens/s";
  }
  text += '\n';
  if (is_running && seconds_left) {
    text += DurationText(std::chrono::seconds(static_cast<int64_t>(*seconds_left))) + " left\n";
  }
  if (!is_running && !has_ended) text += "the same command with --resume continues the job\n";
  if (!is_running && num_failed > 0) text += "vllmcli batch retry " + output_path + " runs the failed rows again\n";
  StandardOutput().Write(SafeText(text));
  return 0;
}

void RetrySettings(Settings& settings) {
  std::error_code error;
  const std::string output_path = std::filesystem::absolute(settings.arguments[1], error).string();
  const JobState state = ReadJobState(output_path);
  if (!state.has_job_file) {
    throw ConfigError("batch retry " + settings.arguments[1] + ": there is no job file (" +
                      JobPath(settings.arguments[1]) + ")");
  }
  RestoreJobSettings(state.header, output_path, settings);
  settings.Set(*FindFlag("output"), {output_path}, SettingSource::kCommandLine, "--output");
  settings.Set(*FindFlag("retry-errors"), {"true"}, SettingSource::kCommandLine, "--retry-errors");
}

}  // namespace vllm::app
