// Reads the fields of OpenAI batch rows that plain rows do not have or that differ there. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/batch/input/batch_row.h"

namespace vllm::app {

// Applies the field called `name` of `body` to `row`. Returns false if the field means the same as in a plain row or is
// unknown. Ignores fields that do not affect the text. Throws RowError for values that are not supported (stream, echo,
// response_format, ...). REQUIRES: row.kind is set.
bool SetOpenAiField(const std::string& name, const nlohmann::ordered_json& value, const nlohmann::ordered_json& body,
                    BatchRow& row);

// Returns the kind of a row from its url. Throws RowError for an unsupported method or url.
RowKind OpenAiKind(const nlohmann::ordered_json& row);

}  // namespace vllm::app
