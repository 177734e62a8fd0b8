// Reads the fields of OpenAI batch rows that plain rows lack or define differently. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/batch/input/batch_row.h"

namespace vllm::app {

// Applies the field called `name` of `body` to `row`. Returns false if the field means the same as in a plain row or is
// unknown. Some fields, such as user and metadata, are accepted and ignored. Throws RowError if the value has the wrong
// type or is not supported, such as true for stream or echo. REQUIRES: row.kind is set.
bool SetOpenAiField(const std::string& name, const nlohmann::ordered_json& value, const nlohmann::ordered_json& body,
                    BatchRow& row);

// Returns the kind of a row from its url. Throws RowError if the method is not POST, or if the url is missing or
// unsupported.
RowKind OpenAiKind(const nlohmann::ordered_json& row);

}  // namespace vllm::app
