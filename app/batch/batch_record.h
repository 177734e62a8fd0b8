// The lines of a batch's output. They hold nothing that depends on timing, batching or the prefix cache: the same row
// gives the same bytes.
#pragma once

#include <string>
#include <string_view>

#include "app/batch/batch_row.h"
#include "engine/request/request_output.h"
#include "tokenizer/tokenizer.h"

namespace vllm {

// What a running row's record will need.
struct RecordHead {
  RowId id;
  RowKind kind = RowKind::kPlain;
  std::string model;
  bool with_logprobs = false;
  bool with_prompt_logprobs = false;
};

// {"index" | "custom_id","prompt_tokens","outputs":[...]}, or an OpenAI batch response. REQUIRES: output is finished.
std::string ResultRecord(const RecordHead& head, const RequestOutput& output, const Tokenizer* tokenizer);

// {"index" | "custom_id","error":{"code","message","line"}}, or the same in an OpenAI batch response.
std::string ErrorRecord(const RowId& id, std::string_view code, std::string_view message);

}  // namespace vllm
