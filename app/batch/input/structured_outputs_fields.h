// Reads the constraints on a row's output, under vLLM's and OpenAI's names, and writes them. Pure functions; any
// thread.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/request/structured_outputs_params.h"

namespace vllm::app {

// Reads vLLM's structured_outputs: one of json, json_object, regex, choice, grammar and structural_tag, and the options
// disable_any_whitespace and any_order. `name` is for errors. Throws RowError.
StructuredOutputsParams StructuredOutputsField(const std::string& name, const nlohmann::ordered_json& value);
// The reverse of StructuredOutputsField.
nlohmann::ordered_json StructuredOutputsJson(const StructuredOutputsParams& params);
// Reads OpenAI's response_format: a type of text, json_object, json_schema, or vLLM's structural_tag. Throws RowError.
std::optional<StructuredOutputsParams> ResponseFormatField(const nlohmann::ordered_json& value);

}  // namespace vllm::app
