#include "engine/tool_calls/syntax/tool_set.h"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

namespace vllm {
namespace {

using Json = nlohmann::json;

// Schemas in anyOf and $ref that are followed for one parameter.
constexpr int kMaxSchemas = 64;

JsonTypes TypeOfName(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, JsonTypes>, 7> kNames = {{{"null", kJsonNull},
                                                                             {"boolean", kJsonBoolean},
                                                                             {"integer", kJsonInteger},
                                                                             {"number", kJsonNumber | kJsonInteger},
                                                                             {"string", kJsonString},
                                                                             {"array", kJsonArray},
                                                                             {"object", kJsonObject}}};
  for (const auto& [known, type] : kNames) {
    if (known == name) return type;
  }
  return 0;
}

JsonTypes TypeOfValue(const Json& value) {
  if (value.is_null()) return kJsonNull;
  if (value.is_boolean()) return kJsonBoolean;
  if (value.is_number_integer()) return kJsonInteger;
  if (value.is_number()) return kJsonNumber;
  if (value.is_string()) return kJsonString;
  return value.is_array() ? kJsonArray : kJsonObject;
}

// Adds the types of one schema without its alternatives. Returns 0 if it does not say.
JsonTypes OwnTypes(const Json& schema) {
  JsonTypes types = 0;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) types = TypeOfName(type->get_ref<const std::string&>());
    if (type->is_array()) {
      for (const Json& name : *type) {
        if (name.is_string()) types |= TypeOfName(name.get_ref<const std::string&>());
      }
    }
  }
  if (types != 0) return types;
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    for (const Json& value : *values) types |= TypeOfValue(value);
  }
  if (const auto value = schema.find("const"); value != schema.end()) types |= TypeOfValue(*value);
  return types;
}

JsonTypes TypesOf(const Json& root, const Json& schema) {
  JsonTypes types = 0;
  std::vector<const Json*> pending = {&schema};
  for (int i = 0; i < kMaxSchemas && !pending.empty(); ++i) {
    const Json& next = *pending.back();
    pending.pop_back();
    if (!next.is_object()) continue;
    const JsonTypes own = OwnTypes(next);
    types |= own;
    if (own != 0) continue;
    for (const char* key : {"anyOf", "oneOf", "allOf"}) {
      const auto list = next.find(key);
      if (list == next.end() || !list->is_array()) continue;
      for (const Json& alternative : *list) pending.push_back(&alternative);
    }
    const auto reference = next.find("$ref");
    if (reference == next.end() || !reference->is_string()) continue;
    const auto& text = reference->get_ref<const std::string&>();
    if (!text.starts_with("#/")) continue;
    try {
      const Json::json_pointer pointer(text.substr(1));
      if (root.contains(pointer)) pending.push_back(&root.at(pointer));
    } catch (const Json::exception&) {
      // An invalid pointer says nothing about the type.
    }
  }
  return types == 0 ? kAnyJsonType : types;
}

}  // namespace

ToolSet::ToolSet(std::vector<ToolDefinition> tools) : tools_(std::move(tools)) {
  for (size_t i = 0; i < tools_.size(); ++i) {
    Entry& entry = entries_[tools_[i].name];
    entry.tool_index = i;
    const Json schema = Json::parse(tools_[i].parameters, nullptr, /*allow_exceptions=*/false);
    if (!schema.is_object()) continue;
    const auto properties = schema.find("properties");
    if (properties == schema.end() || !properties->is_object()) continue;
    for (const auto& [name, property] : properties->items()) entry.parameters[name] = TypesOf(schema, property);
  }
}

const ToolDefinition* ToolSet::Find(std::string_view name) const {
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : &tools_[entry->second.tool_index];
}

JsonTypes ToolSet::ParameterTypes(std::string_view tool, std::string_view parameter) const {
  const auto entry = entries_.find(tool);
  if (entry == entries_.end()) return kAnyJsonType;
  const auto types = entry->second.parameters.find(parameter);
  return types == entry->second.parameters.end() ? kAnyJsonType : types->second;
}

}  // namespace vllm
