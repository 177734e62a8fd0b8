// LoadTools: reads the tools with commands that --tools names.
//
//   FILE.toml   a file with [[tool]] tables:
//     [[tool]]
//     name = "weather"                         letters, digits and _ - . / :
//     description = "Current weather of a city"
//     command = ["./weather.sh", "--short"]    no shell; a relative path with a slash starts at the file's directory
//     timeout = 10                             seconds; default: 30
//     [tool.parameters]                        a JSON Schema of the arguments; may also be a string with its JSON text
//     type = "object"
//     properties.city.type = "string"
//   FILE        an executable. `FILE --schema` prints {"name","description","parameters"} as JSON, and `FILE` alone is
//   the
//               command of the tool
//   DIR         every executable and every .toml file in the directory, except hidden ones
//
// Functions without state; main thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/tools/local_tools.h"

namespace vllm::app {

// Returns true if `path` is a directory, a .toml file or an executable file that is no .json file.
bool NamesTools(const std::string& path);

// Loads the tools. Their names differ. Throws ConfigError `--tools <path>: <why>`, ResourceError, and what the hooks
// throw. REQUIRES: NamesTools(path).
std::vector<LocalTool> LoadTools(const std::string& path, std::span<const PollHook> hooks);

// Parses the text of a .toml file in `directory`. Throws ConfigError `<where>: <why>`.
std::vector<LocalTool> ParseToolTables(const std::string& text, const std::string& directory, const std::string& where);

// Returns the definitions as the text of a JSON array in OpenAI's format; "" if there are none.
std::string DefinitionsJson(std::span<const ToolDefinition> definitions);

}  // namespace vllm::app
