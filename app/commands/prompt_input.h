// The prompt of run and complete: text piped to standard input, joined with the words of the command line.
#pragma once

#include <optional>
#include <string>

#include "app/cli/settings.h"

namespace vllm::app {

// Returns the text of standard input, a line break, and the arguments joined with spaces. Standard input is read if it
// is not a terminal or "-" is among the arguments; one line break at its end is dropped. Returns none if standard input
// is empty and there is no other argument than "-". Throws ConfigError if standard input cannot be read or is too long,
// and Interrupted. Main thread.
std::optional<std::string> ReadPrompt(const Settings& settings);

}  // namespace vllm::app
