// The output records of a batch. They contain nothing that depends on timing, batching or the prefix cache, so equal
// results of a row have equal records, byte for byte. Pure functions; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/batch/input/batch_row.h"
#include "engine/reasoning/reasoning_splitter.h"
#include "engine/request/request_output.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

// The parts of a row that its record needs. Kept while the engine runs the row.
struct RecordHead {
  RowId id;
  RowKind kind = RowKind::kPlain;
  std::string model;
  bool with_logprobs = false;
  bool with_prompt_logprobs = false;
  bool skip_special_tokens = true;
  std::shared_ptr<const ReasoningFormat> reasoning_format = nullptr;  // null: the output is not split
};

// Splits the sequence of `output` if the row's output is to be split.
std::optional<ReasoningParts> PartsOf(const RecordHead& head, const RequestOutput& output,
                                      const CompletionOutput& completion);

// Returns {"index" | "custom_id","prompt_tokens","outputs":[...]}, with "prompt_logprobs" if requested, or an OpenAI
// batch response, as one line of JSON. REQUIRES: output is finished.
std::string ResultRecord(const RecordHead& head, const RequestOutput& output, const tokenizer::Tokenizer* tokenizer);

// Returns {"index" | "custom_id","error":{"code","message","line"}} or an OpenAI batch response with this error, as
// one line of JSON.
std::string ErrorRecord(const RowId& id, std::string_view code, std::string_view message);

}  // namespace vllm::app
