// HubToken: the user's access token for the Hugging Face hub. It is never printed. Reads the environment and one file;
// any thread may call the functions as long as no thread changes the environment.
#pragma once

#include <optional>
#include <string>

namespace vllm::app {

struct HubToken {
  std::string value;
  std::string source;  // "HF_TOKEN", or the path of the file
};

// Returns the path of the token file: $HF_TOKEN_PATH, or "token" in HubHome(). Empty if neither is known.
std::string HubTokenPath();

// Returns the token from HF_TOKEN, HUGGING_FACE_HUB_TOKEN or the token file, without surrounding spaces. Returns
// nullopt if there is none or HF_HUB_DISABLE_IMPLICIT_TOKEN is set. Throws ConfigError if the token has characters that
// cannot be sent.
std::optional<HubToken> FindHubToken();

}  // namespace vllm::app
