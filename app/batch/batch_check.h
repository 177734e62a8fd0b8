// `batch --check`: every row is read, tokenized and validated as a run would do it, and nothing runs.
#pragma once

#include "app/batch/record_reader.h"
#include "app/batch/row_parser.h"
#include "app/cli/settings.h"

namespace vllm {

// Prints the error record of each bad row and a summary; returns the exit status. Without a tokenizer, where that is
// allowed, every row that needs one is bad.
int CheckBatch(const Settings& settings, InputFormat format, bool tokenizer_required, RowDefaults defaults,
               RecordReader& reader);

}  // namespace vllm
