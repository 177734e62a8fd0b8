// The prompt of run and complete: text piped to standard input, joined with the words of the command line. Main thread.
#pragma once

#include <optional>
#include <string>

#include "app/cli/settings.h"

namespace vllm::app {

// Returns the text of standard input and the arguments joined with spaces. If there are both, a line break separates
// them. Standard input is read if it is not a terminal or if "-" is among the arguments; one line break at its end is
// dropped. Returns nullopt if standard input is empty and there is no argument other than "-". Throws ConfigError if
// standard input cannot be read or is too long. Throws Interrupted.
std::optional<std::string> ReadPrompt(const Settings& settings);

}  // namespace vllm::app
