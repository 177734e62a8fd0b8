#include "app/model/structured_outputs_setting.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/model/model_files.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/structured_output/compile_grammar.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxConstraintBytes = size_t{1} << 20;

constexpr std::string_view kSpaces = " \t\r\n";
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes = {
    {{"str", "string"}, {"int", "integer"}, {"float", "number"}, {"bool", "boolean"}}};

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

bool IsJson(std::string_view text) { return Trim(text).starts_with('{'); }

Json SchemaOfType(std::string_view name, std::string_view type) {
  const bool is_array = type.ends_with("[]");
  const std::string_view element = is_array ? type.substr(0, type.size() - 2) : type;
  for (const auto& [short_name, json_name] : kTypes) {
    if (element != short_name) continue;
    const Json schema = {{"type", json_name}};
    return is_array ? Json{{"type", "array"}, {"items", schema}} : schema;
  }
  throw ConfigError("--schema: " + Escape(name) + ": unknown type " + Escape(type),
                    "types are str, int, float, bool, and each of them with [] for a list");
}

// In the order in which an error names two of them.
constexpr std::array<std::string_view, 8> kConstraints = {"schema", "schema-multi", "json-schema", "json-object",
                                                          "regex",  "choice",       "grammar",     "structural-tag"};

bool IsOff(const Settings& settings, std::string_view name) {
  if (name == "json-object") return !settings.Switch(name);
  const std::vector<std::string> values = name == "choice" ? settings.Texts(name) : std::vector{*settings.Text(name)};
  return values.empty() || (values.size() == 1 && (Trim(values[0]).empty() || values[0] == "off"));
}

// Returns the JSON in `value`, or the contents of the file that it names. Adds the name to `where`.
std::string JsonOrFile(const std::string& value, std::string& where) {
  if (IsJson(value)) return value;
  where += " " + Escape(value);
  return ReadFileOrStdin(value, kMaxConstraintBytes);
}

StructuredOutputsParams ConstraintOf(const Settings& settings, std::string_view name, std::string& where) {
  using Kind = StructuredOutputsParams::Kind;
  if (name == "json-object") return {kAnyJsonObject};
  if (name == "choice") return {"", Kind::kChoice, settings.Texts(name)};
  const std::string value = *settings.Text(name);
  if (name == "regex") return {value, Kind::kRegex};
  if (name == "json-schema") return {JsonOrFile(value, where)};
  if (name == "structural-tag") return {JsonOrFile(value, where), Kind::kStructuralTag};
  if (name == "grammar") {
    where += " " + Escape(value);
    return {ReadFileOrStdin(value, kMaxConstraintBytes), Kind::kGrammar};
  }
  const std::string schema = IsJson(value) ? value : SchemaOfFields(value);
  if (name == "schema") return {schema};
  // llm's form of a list.
  return {R"({"type":"object","properties":{"items":{"type":"array","items":)" + schema +
          R"(}},"required":["items"],"additionalProperties":false})"};
}

}  // namespace

bool IsFileName(std::string_view text) { return text.find('/') != text.npos || text.ends_with(".json"); }

std::string SchemaOfFields(std::string_view fields) {
  const char separator = fields.find('\n') == fields.npos ? ',' : '\n';
  Json properties = Json::object();
  Json required = Json::array();
  while (!fields.empty()) {
    const std::string_view field = Trim(fields.substr(0, fields.find(separator)));
    fields.remove_prefix(std::min(fields.size(), fields.find(separator)));
    if (!fields.empty()) fields.remove_prefix(1);
    if (field.empty()) continue;
    const size_t colon = field.find(':');
    const std::string_view definition = Trim(field.substr(0, colon));
    const size_t space = definition.find_first_of(kSpaces);
    const std::string name(definition.substr(0, space));
    if (name.empty()) throw ConfigError("--schema: a field has no name (" + Escape(field) + ")");
    if (IsFileName(name)) {
      throw ConfigError("--schema: " + Escape(name) + " is not the name of a field",
                        "--json-schema FILE reads a JSON Schema from a file");
    }
    if (properties.contains(name)) throw ConfigError("--schema: two fields have the same name (" + Escape(name) + ")");
    Json schema = SchemaOfType(name, space == definition.npos ? "str" : Trim(definition.substr(space)));
    if (colon != field.npos) schema["description"] = Trim(field.substr(colon + 1));
    properties[name] = std::move(schema);
    required.push_back(name);
  }
  if (required.empty()) throw ConfigError("--schema: names no field");
  return DumpJson({{"type", "object"},
                   {"properties", std::move(properties)},
                   {"required", std::move(required)},
                   {"additionalProperties", false}});
}

void SwitchOffOthers(std::string_view name, SettingSource source, Settings& settings) {
  if (std::ranges::find(kConstraints, name) == kConstraints.end()) return;
  for (const std::string_view other : kConstraints) {
    if (other == name || !settings.Has(other) || settings.SourceOf(other) != source) continue;
    settings.Set(*FindFlag(other), {other == "json-object" ? "false" : "off"}, source, std::string(other));
  }
}

bool IsStructuredOutputsFlag(std::string_view name) {
  return name == "any-order" || name == "json-whitespace" ||
         std::ranges::find(kConstraints, name) != kConstraints.end();
}

std::optional<StructuredOutputsParams> ReadStructuredOutputs(const Settings& settings) {
  SettingSource source = SettingSource::kDefault;
  for (const std::string_view candidate : kConstraints) {
    if (settings.Has(candidate)) source = std::max(source, settings.SourceOf(candidate));
  }
  std::string_view name;  // the constraint that counts
  for (const std::string_view candidate : kConstraints) {
    if (!settings.Has(candidate) || settings.SourceOf(candidate) != source || IsOff(settings, candidate)) continue;
    if (!name.empty()) {
      throw ConfigError("--" + std::string(name) + " and --" + std::string(candidate) + ": set only one of them");
    }
    name = candidate;
  }
  if (name.empty()) return std::nullopt;
  std::string where = "--" + std::string(name);
  StructuredOutputsParams params = ConstraintOf(settings, name, where);
  params.any_order = settings.Switch("any-order");
  params.flexible_whitespace = settings.Text("json-whitespace") == "flexible";
  try {
    std::vector<std::string> warnings;
    CompileGrammar(params, {}, &warnings);
    for (const std::string& warning : warnings) PrintWarning(where + ": " + warning);
  } catch (const RequestError& e) {
    throw ConfigError(where + ": " + e.what());
  }
  return params;
}

}  // namespace vllm::app
