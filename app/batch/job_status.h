// Implements `vllmcli batch status` and the settings of `vllmcli batch retry`, from the files of a job. Called by the
// batch command; main thread.
#pragma once

#include <string>

#include "app/cli/settings.h"

namespace vllm::app {

// Prints the state of the job of this output, running or not: rows done, failed rows by error code, speed and time
// left. Returns 0, also if rows have failed. Throws ConfigError if the output has no job file.
int BatchStatus(const Settings& settings, const std::string& output_path);

// Replaces `retry OUTPUT` by the recorded arguments and settings of the job, with --retry-errors. Flags that were given
// have precedence. Throws ConfigError.
void RetrySettings(Settings& settings);

}  // namespace vllm::app
