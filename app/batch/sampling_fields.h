// Sampling parameters in JSON, under vLLM's names, as they stand beside a prompt in a batch row.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/request/sampling_params.h"

namespace vllm {

// Sets the field called `name`; false when there is none. null leaves the default. Throws RowError
// `<field>: <why> (<value>)` for a value of the wrong type.
bool SetSamplingField(const std::string& name, const nlohmann::ordered_json& value, SamplingParams& params);

// JSON readers with the same errors.
int64_t IntegerField(const std::string& name, const nlohmann::ordered_json& value);
double NumberField(const std::string& name, const nlohmann::ordered_json& value);
bool SwitchField(const std::string& name, const nlohmann::ordered_json& value);
std::string TextField(const std::string& name, const nlohmann::ordered_json& value);

}  // namespace vllm
