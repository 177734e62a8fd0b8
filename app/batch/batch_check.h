// Implements `vllmcli batch --check`: reads, tokenizes and validates every row as a run would, but generates nothing.
// Does not check the limits that the size of the KV cache and --max-output-memory set. Called by the batch command;
// main thread.
#pragma once

#include "app/batch/input/record_source.h"
#include "app/batch/input/row_parser.h"
#include "app/cli/settings.h"

namespace vllm::app {

// Prints the error record of each invalid row and a summary. Returns the exit status: 1 if any row is invalid, else 0.
// If the model has no tokenizer and `tokenizer_required` is false, rows that need a tokenizer are invalid. Throws
// ConfigError, ModelError, ResourceError, TokenizerError, ChatTemplateError, OutputClosed, Interrupted.
int CheckBatch(const Settings& settings, InputFormat format, bool tokenizer_required, RowDefaults defaults,
               RecordSource& records);

}  // namespace vllm::app
