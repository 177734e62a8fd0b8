// The address of the Hugging Face hub, or of a mirror of it. Reads the environment; any thread may call it as long as
// no thread changes it.
#pragma once

#include <string>
#include <string_view>

namespace vllm::app {

inline constexpr char kDefaultHubEndpoint[] = "https://huggingface.co";

// Returns $HF_ENDPOINT without trailing slashes, or https://huggingface.co. Throws ConfigError if the variable is not
// an http or https URL of printable ASCII characters.
std::string HubEndpoint();

// Returns true if HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is 1, on, yes or true in any letter case.
bool IsHubOffline();

// Returns true if the environment variable is 1, on, yes or true in any letter case.
bool IsEnvironmentSwitchOn(const char* variable);

}  // namespace vllm::app
