#include "app/hub/api/hub_token.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "app/hub/hub_cache.h"
#include "app/hub/hub_endpoint.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxTokenBytes = 4096;

std::string Trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1));
}

std::optional<HubToken> Checked(const std::string& text, const std::string& source) {
  const std::string token = Trimmed(text);
  if (token.empty()) return std::nullopt;
  // A line break would start another header.
  const bool is_printable = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!is_printable || token.size() > kMaxTokenBytes) {
    throw ConfigError("hub token in " + Escape(source) + ": must be one word of ASCII characters");
  }
  return HubToken{token, source};
}

}  // namespace

std::string HubTokenPath() {
  if (const char* path = std::getenv("HF_TOKEN_PATH"); path != nullptr && *path != '\0') return path;
  const std::filesystem::path home = HubHome();
  return home.empty() ? "" : (home / "token").string();
}

std::optional<HubToken> FindHubToken() {
  if (IsEnvironmentSwitchOn("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return std::nullopt;
  for (const char* variable : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr) continue;
    if (const std::optional<HubToken> token = Checked(value, variable)) return token;
  }
  const std::string path = HubTokenPath();
  if (path.empty()) return std::nullopt;
  std::string text;
  tokenizer::ReadRegularFile(path, kMaxTokenBytes, text);
  return Checked(text, path);
}

}  // namespace vllm::app
