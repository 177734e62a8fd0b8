// BatchTarget: where a batch writes its rows, and the job that they belong to. Checked before the model is loaded, so
// that nothing is wasted on a job that cannot run. Owned by the batch command; main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "app/batch/batch_input.h"
#include "app/batch/batch_output.h"
#include "app/batch/input/row_parser.h"
#include "app/batch/job/batch_job.h"
#include "app/cli/settings.h"
#include "engine/frontend/llm_engine.h"

namespace vllm::app {

struct BatchTarget {
  std::string path;  // "" means standard output
  std::string errors_path;
  bool is_job = false;  // the output is a regular file
  JobOptions options;
  nlohmann::ordered_json header;  // of the job
  // The context of the engine with which the job began, if this run continues it.
  std::optional<int64_t> max_model_len = {};
};

// Checks everything about the output that needs no model. Throws ConfigError if the job cannot be started or resumed,
// and ResourceError. Fixes the time that chat templates see to that of the job's first start.
BatchTarget CheckTarget(Settings& settings, const BatchInput& input, const RowDefaults& defaults);

// Records the context of the engine in the header of a new job. If the run continues a job, sets the engine's context
// to that of the job's first start, which may have had more or less memory for the KV cache: the context decides where
// long answers end and which prompts are rejected.
void KeepContext(BatchTarget& target, LLMEngine& engine);

// Opens the output and the errors file. Throws as BatchJob and BatchOutput do.
BatchOutput OpenOutput(const BatchTarget& target, bool ordered);

}  // namespace vllm::app
