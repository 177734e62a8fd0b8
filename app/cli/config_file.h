// The configuration file, TOML: flags by their long names, at the top for every command or in a table named as a
// command for that one. An unknown key is an error. Worked example:
//     model = "/models/llama"
//     temperature = 0.7
//     stop = ["###"]
//     [batch]
//     max-num-seqs = 256
#pragma once

#include <string>

#include "app/cli/settings.h"

namespace vllm {

// Adds what the file says for settings.command. `path` empty: the default place, where a missing file is no error.
// Throws ConfigError `<file>:<line>:<column>: <key>: <why> (<value>)`.
void ReadConfigFile(const std::string& path, Settings& settings);

}  // namespace vllm
