// Reads the configuration file, which is TOML. Keys are the long names of flags with in_config. A key at the top
// applies to every command that has the flag. A key in a table named after a command applies to that command only and
// overrides the key at the top. Unknown keys are errors. Main thread. Example:
//     model = "/models/llama"
//     temperature = 0.7
//     stop = ["###"]
//     [batch]
//     max-num-seqs = 256
// A table [mcp.NAME] is an MCP server: command (an array), and optionally env, timeout (seconds) and protocol (auto,
// legacy or 2026-07-28):
//     [mcp.files]
//     command = ["files-server", "/home/me"]
//     env = {TOKEN = "x"}
#pragma once

#include <cstddef>
#include <string>

#include "app/cli/settings.h"

namespace vllm::app {

// toml11 parses about 200,000 scalars per second. With this limit, the slowest file takes a few seconds.
inline constexpr size_t kMaxConfigFileBytes = size_t{1} << 20;

// Adds the file's values for settings.command. An empty `path` means the default location, where a missing file is not
// an error. Throws ConfigError: `<file>:<line>:<column>: <table or key>: <why>` for an unusable table, key or value,
// the error of ReadToml for invalid TOML, or `configuration file <file>: <why>` if the file cannot be read. Throws
// ResourceError if memory or file descriptors run out.
void ReadConfigFile(const std::string& path, Settings& settings);

}  // namespace vllm::app
