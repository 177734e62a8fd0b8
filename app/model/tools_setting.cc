#include "app/model/tools_setting.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/model/model_files.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/tools/tool_loader.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

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

// Calls `load` while signals are only recorded, so that no program that it runs stays behind.
std::vector<LocalTool> LoadNamedTools(const std::string& path) {
  const RecordsSignals records_signals;
  const PollHook hook = {SignalFd(), [] {
                           ThrowIfInterrupted();
                           return true;
                         }};
  return LoadTools(path, {&hook, 1});
}

}  // namespace

std::string ReadTools(const Settings& settings, const PromptRenderer& renderer) {
  const std::string value = settings.Text("tools").value_or("");
  std::string tools;
  if (NamesTools(value)) {
    std::vector<ToolDefinition> definitions;
    for (const LocalTool& tool : LoadNamedTools(value)) definitions.push_back(tool.definition);
    tools = DefinitionsJson(definitions);
  } else {
    tools = ToolsText(value);
  }
  if (!tools.empty() && !renderer.UsesVariable("tools")) {
    PrintWarning("--tools: the chat template (" + renderer.source().origin + ") does not show tools to the model");
  }
  return tools;
}

std::vector<LocalTool> ReadLocalTools(const Settings& settings) {
  const std::string value = settings.Text("tools").value_or("");
  if (NamesTools(value)) return LoadNamedTools(value);
  std::vector<LocalTool> tools;
  const std::string text = ToolsText(value);
  if (text.empty()) return tools;
  try {
    for (ToolDefinition& definition : ParseToolDefinitions(text)) tools.push_back({std::move(definition), {}});
  } catch (const RequestError& error) {
    throw ConfigError(std::string("--tools: ") + error.what());
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
