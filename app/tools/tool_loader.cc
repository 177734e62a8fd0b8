#include "app/tools/tool_loader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "app/tools/run_child.h"
#include "app/tools/toml_tree.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxTomlBytes = size_t{256} << 10;
constexpr size_t kMaxSchemaBytes = size_t{256} << 10;
constexpr double kMaxTimeoutSeconds = 86400;

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool IsExecutable(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

[[noreturn]] void Fail(const std::string& where, const std::string& why) { throw ConfigError(where + ": " + why); }

std::string TextOf(const Json& table, const char* key, const std::string& where) {
  if (!table.contains(key)) return "";
  if (!table[key].is_string()) Fail(where, std::string(key) + " must be a string");
  return table[key].get<std::string>();
}

// Checks the definition as one of a request.
ToolDefinition DefinitionOf(Json definition, const std::string& where) {
  try {
    std::vector<ToolDefinition> definitions = ParseToolDefinitions(DumpJson(Json::array({std::move(definition)})));
    return std::move(definitions.at(0));
  } catch (const RequestError& error) {
    Fail(where, error.what());
  }
}

LocalTool ToolOf(const Json& table, const std::string& directory, const std::string& where) {
  for (const auto& [key, value] : table.items()) {
    if (key != "name" && key != "description" && key != "command" && key != "timeout" && key != "parameters") {
      Fail(where, "unknown key " + Escape(key) + "; a tool has name, description, parameters, command and timeout");
    }
  }
  Json definition = {{"name", TextOf(table, "name", where)}, {"description", TextOf(table, "description", where)}};
  if (table.contains("parameters") && table["parameters"].is_string()) {
    Json parameters;
    const std::string error = ParseJsonText(table["parameters"].get<std::string>(), parameters);
    if (!error.empty()) Fail(where, "parameters: " + error);
    definition["parameters"] = std::move(parameters);
  } else if (table.contains("parameters")) {
    definition["parameters"] = table["parameters"];
  }
  LocalTool tool;
  tool.definition = DefinitionOf(std::move(definition), where);
  const Json command = table.value("command", Json());
  if (!command.is_array() || command.empty()) {
    Fail(where,
         "tool " + tool.definition.name + ": command must be an array of strings, the program and its arguments");
  }
  for (const Json& argument : command) {
    if (!argument.is_string() || argument.get<std::string>().find('\0') != std::string::npos) {
      Fail(where, "tool " + tool.definition.name + ": command must contain only strings without NUL");
    }
    tool.command.argv.push_back(argument.get<std::string>());
  }
  std::string& program = tool.command.argv[0];
  if (program.empty()) Fail(where, "tool " + tool.definition.name + ": the program in command is empty");
  if (program.front() != '/' && program.find('/') != std::string::npos) program = directory + "/" + program;
  if (table.contains("timeout")) {
    const double seconds = table["timeout"].is_number() ? table["timeout"].get<double>() : 0;
    if (!(seconds > 0 && seconds <= kMaxTimeoutSeconds)) {
      Fail(where, "tool " + tool.definition.name + ": timeout must be a number of seconds above 0, at most 86400");
    }
    tool.timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000 + 0.5));
  }
  return tool;
}

std::vector<LocalTool> LoadToml(const std::string& path, const std::string& where) {
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path, kMaxTomlBytes, text);
  if (file.is_out_of_resources()) throw ResourceError(where + ": " + file.error);
  if (!file.ok()) Fail(where, file.error);
  const size_t slash = path.find_last_of('/');
  return ParseToolTables(text, slash == std::string::npos ? "." : path.substr(0, slash), where);
}

// Asks a program for its schema.
LocalTool LoadProgram(const std::string& path, const std::string& where, std::span<const PollHook> hooks) {
  LocalTool tool;
  tool.command.argv = {path.find('/') == std::string::npos ? "./" + path : path};
  ChildCommand question = tool.command;
  question.argv.emplace_back("--schema");
  ChildLimits limits;
  limits.timeout = std::chrono::seconds(10);
  limits.max_output_bytes = kMaxSchemaBytes;
  ChildResult result;
  try {
    result = RunChild(question, "", limits, hooks);
  } catch (const ToolError& error) {
    Fail(where, error.what());
  }
  const std::string last_words = result.error_output.empty() ? "" : "; it wrote: " + Escape(result.error_output);
  if (result.end == ChildResult::End::kTimedOut) Fail(where, "--schema did not end within 10 s" + last_words);
  if (result.end != ChildResult::End::kEnded) Fail(where, "--schema was stopped");
  if (!result.succeeded) Fail(where, "--schema " + result.end_text + last_words);
  if (result.num_omitted_bytes > 0) Fail(where, "--schema printed too much (limit 256 KiB)");
  Json definition;
  const std::string error = ParseJsonText(result.output, definition);
  if (!error.empty()) Fail(where, "--schema printed no JSON: " + error);
  if (!definition.is_object()) {
    Fail(where, R"(--schema must print a JSON object {"name","description","parameters"})");
  }
  tool.definition = DefinitionOf(std::move(definition), where + ": --schema");
  return tool;
}

void Append(std::vector<LocalTool> more, std::vector<LocalTool>& tools) {
  for (LocalTool& tool : more) tools.push_back(std::move(tool));
}

}  // namespace

bool NamesTools(const std::string& path) {
  return IsDirectory(path) || path.ends_with(".toml") || (!path.ends_with(".json") && IsExecutable(path));
}

std::vector<LocalTool> ParseToolTables(const std::string& text, const std::string& directory,
                                       const std::string& where) {
  const Json document = ReadTomlTree(text, where);
  std::vector<LocalTool> tools;
  for (const auto& [key, value] : document.items()) {
    if (key != "tool") Fail(where, "unknown key " + Escape(key) + "; the file has only [[tool]] tables");
  }
  const Json tables = document.value("tool", Json());
  if (!tables.is_array() || tables.empty() || !tables[0].is_object()) Fail(where, "has no [[tool]] table");
  for (size_t i = 0; i < tables.size(); ++i) {
    tools.push_back(ToolOf(tables[i], directory, where + ": tool " + std::to_string(i + 1)));
  }
  return tools;
}

std::vector<LocalTool> LoadTools(const std::string& path, std::span<const PollHook> hooks) {
  const std::string where = "--tools " + Escape(path);
  std::vector<LocalTool> tools;
  if (!IsDirectory(path)) {
    if (path.ends_with(".toml")) {
      tools = LoadToml(path, where);
    } else {
      tools.push_back(LoadProgram(path, where, hooks));
    }
  } else {
    const std::string directory = path.ends_with('/') ? path.substr(0, path.find_last_not_of('/') + 1) : path;
    for (const std::string& name : tokenizer::NamesInDirectory(path)) {
      const std::string file = directory + "/" + name;
      if (name.starts_with('.')) continue;
      if (name.ends_with(".toml")) {
        Append(LoadToml(file, "--tools " + Escape(file)), tools);
      } else if (IsExecutable(file)) {
        tools.push_back(LoadProgram(file, "--tools " + Escape(file), hooks));
      }
    }
    if (tools.empty()) Fail(where, "the directory has neither an executable nor a .toml file");
  }
  std::set<std::string> names;
  for (const LocalTool& tool : tools) {
    if (!names.insert(tool.definition.name).second) Fail(where, "two tools are called " + tool.definition.name);
  }
  return tools;
}

std::string DefinitionsJson(std::span<const ToolDefinition> definitions) {
  std::string json;
  for (const ToolDefinition& definition : definitions) {
    json += json.empty() ? "[" : ",";
    json += R"({"type":"function","function":{"name":)" + DumpJson(Json(definition.name)) + R"(,"description":)" +
            DumpJson(Json(definition.description)) + R"(,"parameters":)" + definition.parameters + "}}";
  }
  return json.empty() ? "" : json + "]";
}

}  // namespace vllm::app
