// Aliases: short names that users give to models. They are kept in $XDG_CONFIG_HOME/vllmcli/model-aliases.toml, which
// `vllmcli models alias` writes and users may edit:
//
//   small = "bartowski/SmolLM2-1.7B-Instruct-GGUF:Q4_K_M"
//   work = "/srv/models/llama"
//
// A target is never looked up as an alias, so there are no loops. The functions read the environment and the file; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

struct ModelAlias {
  std::string name;
  std::string target;  // a repository with or without a tag, a URL of the hub, or a path
};

// Returns true if `name` may be an alias: 1 to 64 letters, digits, '.', '_' and '-', a letter or digit first, neither
// "guide" nor ending in ".gguf".
bool IsModelAliasName(std::string_view name);

// Returns the path of the file, or "" if neither XDG_CONFIG_HOME nor HOME is an absolute path.
std::string ModelAliasesPath();

// Returns the aliases sorted by name. Throws ConfigError `<file>:<line>:<column>: <why>` if the file is invalid, and
// ResourceError.
std::vector<ModelAlias> ReadModelAliases();

// Returns the target of an alias. Returns nullopt, without reading the file, if `name` cannot be an alias. Throws like
// ReadModelAliases.
std::optional<std::string> FindModelAlias(const std::string& name);

// Adds or changes an alias. REQUIRES: IsModelAliasName(name). Throws ConfigError, ResourceError.
void SetModelAlias(const std::string& name, const std::string& target);
// Returns false if there is no such alias. Throws ConfigError, ResourceError.
bool RemoveModelAlias(const std::string& name);

}  // namespace vllm::app
