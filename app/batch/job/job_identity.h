// What a batch job is: its command, input, model and the settings that change tokens. A job can be resumed only as the
// same job. The functions read files and keep no state; main thread.
//
// The keys of a job file's header:
//     job, version  "vllmcli batch", 1
//     generation    how often the output has been rewritten, which happens when failed rows run again
//     directory     the working directory of the command, against which relative paths are resolved
//     arguments     the inputs, as they were given
//     flags         the flags and other settings that were set: {NAME: [VALUE,...]}
//     input_bytes   the size of the input if it is one regular file, else null
//     model         {"name": NAME, "digest": 16 hex digits of ModelContentDigest}
//     now           the time of the first start, which chat templates may print
//     max_model_len the context of the engine at the first start, which the memory for the KV cache may have limited
//     settings      the settings that change tokens: {NAME: TEXT}; long values and files as their digest
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/settings.h"
#include "app/installed/model_location.h"
#include "app/presets/preset_prompt.h"

namespace vllm::app {

// Returns the header of a new job. REQUIRES: the settings of the preset have been applied to `settings`.
nlohmann::ordered_json MakeJobHeader(const Settings& settings, const std::optional<PresetPrompt>& preset,
                                     const ModelLocation& location, std::optional<int64_t> input_bytes);

// A setting that differs between two jobs, or the model.
struct JobDifference {
  std::string name;
  // Both are empty if only digests are known. For the model, they are names; the same name: its files differ.
  std::string old_value, new_value;
  bool is_model = false;
};

// Returns what differs between the job of the header `old_header` and that of `new_header`, other than the input.
// Empty: they are the same job.
std::vector<JobDifference> JobDifferences(const nlohmann::ordered_json& old_header,
                                          const nlohmann::ordered_json& new_header);
// Returns the text for a job that has changed, such as "temperature was 0.7 and is now 0.9".
std::string ChangeText(const JobDifference& difference);
// Returns the text for two ranks of one job, such as "temperature is 0.7 on rank 0 and 0.9 there".
std::string MismatchText(const JobDifference& difference);

// Restores the settings that the header records, as if they had been given on the command line, in front of which
// `settings` has precedence, and changes to the recorded directory. Throws ConfigError if the header is invalid, or if
// the job read standard input.
void RestoreJobSettings(const nlohmann::ordered_json& header, const std::string& output_path, Settings& settings);

}  // namespace vllm::app
