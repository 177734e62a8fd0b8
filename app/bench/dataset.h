// Reads the prompts of `vllmcli bench --dataset`. Main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/batch/input/batch_row.h"
#include "app/cli/settings.h"
#include "app/model/load_model.h"

namespace vllm::app {

// Returns the text of the file that --dataset names. Throws ConfigError and ResourceError.
std::string ReadDataset(const Settings& settings);

// Parses the first `max_rows` rows of `text`, the contents of the file `path`: rows of a batch if the name ends with
// .jsonl, or else one prompt per line. Blank lines are skipped. As in a batch, lines of text are messages of a chat if
// the model has a chat template. Throws ConfigError if a row is invalid, or if there are no rows.
std::vector<BatchRow> ParseDataset(const std::string& text, const std::string& path, int64_t max_rows,
                                   const LoadedModel& model);

}  // namespace vllm::app
