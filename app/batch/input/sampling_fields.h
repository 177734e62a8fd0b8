// Reads sampling parameters, under vLLM's names, from the JSON fields of a batch row. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/request/sampling_params.h"

namespace vllm::app {

// Sets the parameter called `name`. Returns false if there is no such parameter. null keeps the default. Throws
// RowError `<field>: <why> (<value>)` if the value has the wrong type or does not fit in the parameter's type.
bool SetSamplingField(const std::string& name, const nlohmann::ordered_json& value, SamplingParams& params);

// Reads vLLM's structured_outputs: one of json, json_object, regex, choice, grammar and structural_tag, and the options
// disable_any_whitespace and any_order. `name` is for errors. Throws RowError.
StructuredOutputsParams StructuredOutputsField(const std::string& name, const nlohmann::ordered_json& value);
// The reverse of StructuredOutputsField.
nlohmann::ordered_json StructuredOutputsJson(const StructuredOutputsParams& params);
// Reads OpenAI's response_format: a type of text, json_object, json_schema, or vLLM's structural_tag. Returns nullopt
// for text. Throws RowError.
std::optional<StructuredOutputsParams> ResponseFormatField(const nlohmann::ordered_json& value);

// Convert a JSON value to the return type. Throw the same RowError if its type does not match. IntegerField also
// accepts floats without a fraction, such as 2.0.
int64_t IntegerField(const std::string& name, const nlohmann::ordered_json& value);
double NumberField(const std::string& name, const nlohmann::ordered_json& value);
bool SwitchField(const std::string& name, const nlohmann::ordered_json& value);
std::string TextField(const std::string& name, const nlohmann::ordered_json& value);
// A string counts as a list of one.
std::vector<std::string> TextsField(const std::string& name, const nlohmann::ordered_json& value);
// Throws RowError `<name>: <why> (<value>)`.
[[noreturn]] void FailField(const std::string& name, const char* why, const nlohmann::ordered_json& value);

}  // namespace vllm::app
