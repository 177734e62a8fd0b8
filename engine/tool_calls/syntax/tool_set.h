// ToolSet: the tools of one request, with the JSON types that their schemas give to each parameter. Immutable; shared
// by the parsers of a request; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tool_calls/syntax/tool_definition.h"

namespace vllm {

// A set of JSON types, as bits.
using JsonTypes = uint8_t;
inline constexpr JsonTypes kJsonNull = 1, kJsonBoolean = 2, kJsonInteger = 4, kJsonNumber = 8, kJsonString = 16,
                           kJsonArray = 32, kJsonObject = 64, kAnyJsonType = 127;

class ToolSet {
 public:
  ToolSet() = default;
  // REQUIRES: the names differ, and `parameters` are JSON objects, as ParseToolDefinitions returns them.
  explicit ToolSet(std::vector<ToolDefinition> tools);

  const std::vector<ToolDefinition>& tools() const { return tools_; }
  bool empty() const { return tools_.empty(); }
  // Returns null if there is no tool with this name.
  const ToolDefinition* Find(std::string_view name) const;
  // Returns the types that the schema of the tool allows for a parameter: those of "type", "enum", "const", "anyOf",
  // "oneOf" and local "$ref". kAnyJsonType if the tool or the parameter is unknown or has no type.
  JsonTypes ParameterTypes(std::string_view tool, std::string_view parameter) const;

 private:
  struct Entry {
    size_t tool_index;
    std::map<std::string, JsonTypes, std::less<>> parameters;
  };
  std::vector<ToolDefinition> tools_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace vllm
