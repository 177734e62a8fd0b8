// The body of an OpenAI batch row: its own names for what SamplingParams has, and the fields it may carry along.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/batch/batch_row.h"

namespace vllm {

// Sets what the field called `name` means for a row of this kind; false when it is not one of OpenAI's own. Fields
// whose effect would be missed (stream, echo, response_format, ...) are refused, those without effect on the text are
// ignored. Throws RowError.
bool SetOpenAiField(const std::string& name, const nlohmann::ordered_json& value, const nlohmann::ordered_json& body,
                    BatchRow& row);

// The row's kind. Throws RowError for another method or url.
RowKind OpenAiKind(const nlohmann::ordered_json& row);

}  // namespace vllm
