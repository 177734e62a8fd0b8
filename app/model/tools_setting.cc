#include "app/model/tools_setting.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/model/model_files.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxToolsBytes = 1 << 20;

std::string ToolsText(const std::string& value) {
  const size_t begin = value.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  const bool is_json = value[begin] == '[';
  const std::string where = is_json ? "--tools" : "--tools " + Escape(value);
  nlohmann::ordered_json tools;
  const std::string error = ParseJsonText(is_json ? value : ReadFileOrStdin(value, kMaxToolsBytes), tools);
  if (!error.empty()) throw ConfigError(where + ": " + error);
  if (!tools.is_array() || !std::all_of(tools.begin(), tools.end(), [](const auto& t) { return t.is_object(); })) {
    throw ConfigError(where + ": must be a JSON array of objects, each of which defines a tool");
  }
  return tools.empty() ? "" : DumpJson(tools);
}

}  // namespace

std::string ReadTools(const Settings& settings, const PromptRenderer& renderer) {
  std::string tools = ToolsText(settings.Text("tools").value_or(""));
  if (!tools.empty() && !renderer.UsesVariable("tools")) {
    PrintWarning("--tools: the chat template (" + renderer.source().origin + ") does not show tools to the model");
  }
  return tools;
}

}  // namespace vllm::app
