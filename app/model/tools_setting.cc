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

const ToolCallFormat* ModelToolCallFormat(const Settings& settings, const PromptRenderer& renderer,
                                          const tokenizer::Tokenizer& tokenizer) {
  const std::string name = settings.Text("tool-call-parser").value_or("auto");
  if (name == "none") return nullptr;
  const std::string& source =
      renderer.source().tool_use_text.empty() ? renderer.source().text : renderer.source().tool_use_text;
  const auto is_token = [&](std::string_view text) { return tokenizer.TokenToId(text).has_value(); };
  const ToolCallFormat* format = ChooseToolCallFormat(name, source, is_token);
  if (format == nullptr && name != "auto") {
    throw ConfigError("--tool-call-parser: no parser has this name (" + Escape(name) + ")");
  }
  return format;
}

}  // namespace vllm::app
