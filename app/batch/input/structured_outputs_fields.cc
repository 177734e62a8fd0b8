#include "app/batch/input/structured_outputs_fields.h"

#include <nlohmann/json.hpp>

#include "app/batch/input/batch_row.h"
#include "app/batch/input/sampling_fields.h"
#include "app/output/json_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;
using Kind = StructuredOutputsParams::Kind;

// A schema is an object, true, false, or the text of one.
std::string SchemaField(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object() && !value.is_boolean()) FailField(name, "must be a JSON Schema", value);
  return DumpJson(value);
}

// Returns the constraint if `key` is the name of one.
std::optional<StructuredOutputsParams> ConstraintField(const std::string& key, const std::string& name,
                                                       const Json& value) {
  if (key == "json") return StructuredOutputsParams{SchemaField(name, value)};
  if (key == "json_object") {
    if (value != true) FailField(name, "must be true", value);
    return StructuredOutputsParams{kAnyJsonObject};
  }
  if (key == "regex") return StructuredOutputsParams{TextField(name, value), Kind::kRegex};
  if (key == "grammar") return StructuredOutputsParams{TextField(name, value), Kind::kGrammar};
  if (key == "choice") {
    if (!value.is_array()) FailField(name, "must be a list of strings", value);
    return StructuredOutputsParams{"", Kind::kChoice, TextsField(name, value)};
  }
  if (key != "structural_tag") return std::nullopt;
  if (!value.is_string() && !value.is_object()) FailField(name, "must be an object", value);
  return StructuredOutputsParams{value.is_string() ? value.get<std::string>() : DumpJson(value), Kind::kStructuralTag};
}

}  // namespace

StructuredOutputsParams StructuredOutputsField(const std::string& name, const Json& value) {
  if (!value.is_object()) FailField(name, "must be an object", value);
  std::optional<StructuredOutputsParams> params;
  bool any_order = false;
  bool flexible_whitespace = false;
  for (const auto& [key, constraint] : value.items()) {
    if (constraint.is_null()) continue;
    const std::string field = name + "." + key.substr(0, 64);
    if (key == "any_order") {
      any_order = SwitchField(field, constraint);
    } else if (key == "disable_any_whitespace") {
      flexible_whitespace = !SwitchField(field, constraint);
    } else if (auto found = ConstraintField(key, field, constraint)) {
      if (params) throw RowError("invalid_row", name + ": must have only one constraint");
      params = std::move(found);
    } else {
      throw RowError("invalid_row", field + ": not supported");
    }
  }
  if (!params) throw RowError("invalid_row", name + ": must have a constraint");
  params->any_order = any_order;
  params->flexible_whitespace = flexible_whitespace;
  return *params;
}

Json StructuredOutputsJson(const StructuredOutputsParams& params) {
  Json json = Json::object();
  switch (params.kind) {
    case Kind::kJson:
      json["json"] = params.text;
      break;
    case Kind::kRegex:
      json["regex"] = params.text;
      break;
    case Kind::kChoice:
      json["choice"] = params.choice;
      break;
    case Kind::kGrammar:
      json["grammar"] = params.text;
      break;
    case Kind::kStructuralTag:
      json["structural_tag"] = params.text;
      break;
  }
  if (params.any_order) json["any_order"] = true;
  if (params.flexible_whitespace) json["disable_any_whitespace"] = false;
  return json;
}

std::optional<StructuredOutputsParams> ResponseFormatField(const Json& value) {
  const std::string name = "response_format";
  if (value.is_null()) return std::nullopt;
  if (!value.is_object()) FailField(name, "must be an object", value);
  const std::string type = TextField(name + ".type", value.value("type", Json()));
  if (type == "text") return std::nullopt;
  if (type == "json_object") return StructuredOutputsParams{kAnyJsonObject};
  if (type == "structural_tag") return StructuredOutputsParams{DumpJson(value), Kind::kStructuralTag};
  if (type != "json_schema") {
    FailField(name + ".type", "must be text, json_object, json_schema or structural_tag", Json(type));
  }
  const Json format = value.value("json_schema", Json());
  if (!format.is_object()) FailField(name + ".json_schema", "must be an object", format);
  // `strict` changes nothing: a schema is enforced or rejected.
  return StructuredOutputsParams{SchemaField(name + ".json_schema.schema", format.value("schema", Json()))};
}

}  // namespace vllm::app
