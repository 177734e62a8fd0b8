#include "app/model/schema_setting.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/model/model_files.h"
#include "app/output/json_text.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/structured_output/json_schema_compiler.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

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

std::optional<StructuredOutputsParams> ReadSchema(const Settings& settings) {
  const std::optional<std::string> json = settings.Text("json-schema");
  const std::optional<std::string> fields = settings.Text("schema");
  if (!json && !fields) return std::nullopt;
  // Of two flags, that of the source with higher precedence counts.
  const SettingSource json_source = settings.SourceOf("json-schema");
  const SettingSource fields_source = settings.SourceOf("schema");
  if (json_source == fields_source) throw ConfigError("--schema and --json-schema: set only one of them");
  const bool uses_fields = fields_source > json_source;
  // Switches off that of a preset or the configuration file.
  const std::string_view value = Trim(uses_fields ? *fields : *json);
  if (value.empty() || value == "off") return std::nullopt;
  std::string flag = uses_fields ? "--schema" : "--json-schema";
  std::string schema;
  if (uses_fields) {
    schema = IsJson(*fields) ? *fields : SchemaOfFields(*fields);
  } else if (IsJson(*json)) {
    schema = *json;
  } else {
    flag += " " + Escape(*json);
    schema = ReadFileOrStdin(*json, kMaxJsonSchemaBytes);
  }
  try {
    CompileJsonSchema(schema);
  } catch (const RequestError& e) {
    throw ConfigError(flag + ": " + e.what());
  }
  return StructuredOutputsParams{std::move(schema)};
}

}  // namespace vllm::app
