// Completion scripts for bash, zsh and fish, made from the tables.
#pragma once

#include <string>
#include <string_view>

namespace vllm {

// `shell` is bash, zsh or fish. Throws ConfigError for another.
std::string CompletionScript(std::string_view shell);

}  // namespace vllm
