// Completion scripts for bash, zsh and fish, generated from the tables of commands and flags. A pure function; any
// thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::app {

// Returns the script for `shell`: bash, zsh or fish. Throws ConfigError for any other shell.
std::string CompletionScript(std::string_view shell);

}  // namespace vllm::app
