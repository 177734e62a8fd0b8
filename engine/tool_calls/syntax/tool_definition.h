// ToolDefinition: a tool that a request offers to the model, and ParseToolDefinitions, which reads the `tools` of
// OpenAI's API. Plain values; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

struct ToolDefinition {
  std::string name;
  std::string description;        // may be empty
  std::string parameters = "{}";  // a JSON Schema of the arguments, as the text of a JSON object
  bool strict = false;            // OpenAI's `strict`: the arguments must match the schema
  friend bool operator==(const ToolDefinition&, const ToolDefinition&) = default;
};

inline constexpr size_t kMaxToolsBytes = size_t{1} << 20;
inline constexpr size_t kMaxTools = 1024;
inline constexpr size_t kMaxToolNameBytes = 128;

// Returns true if `name` has 1 to kMaxToolNameBytes letters, digits and characters of "_-./:".
bool IsToolName(std::string_view name);

// Reads a JSON array of {"type": "function", "function": {"name", "description", "parameters", "strict"}} or of the
// inner objects alone. Throws RequestError `tools[I] (NAME): <why>` if a definition is invalid, a name occurs twice, or
// the array exceeds kMaxToolsBytes or kMaxTools, or 64 levels of nesting.
std::vector<ToolDefinition> ParseToolDefinitions(std::string_view json);

}  // namespace vllm
