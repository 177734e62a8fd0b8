#include "app/hub/hub_endpoint.h"

#include <algorithm>
#include <cstdlib>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {

std::string HubEndpoint() {
  const char* variable = std::getenv("HF_ENDPOINT");
  if (variable == nullptr || *variable == '\0') return kDefaultHubEndpoint;
  std::string endpoint = variable;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool is_url = (endpoint.starts_with("https://") && endpoint.size() > 8) ||
                      (endpoint.starts_with("http://") && endpoint.size() > 7);
  const bool is_printable = std::all_of(endpoint.begin(), endpoint.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!is_url || !is_printable || endpoint.find_first_of("?#@\\") != std::string::npos) {
    throw ConfigError("HF_ENDPOINT: must be an http or https URL without user, query and fragment (" +
                      Escape(endpoint) + ")");
  }
  return endpoint;
}

bool IsEnvironmentSwitchOn(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return false;
  std::string lower = value;
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower == "1" || lower == "on" || lower == "yes" || lower == "true";
}

bool IsHubOffline() { return IsEnvironmentSwitchOn("HF_HUB_OFFLINE") || IsEnvironmentSwitchOn("TRANSFORMERS_OFFLINE"); }

}  // namespace vllm::app
