// The prompt of run and complete: words of the command line and text piped in, joined.
#pragma once

#include <optional>
#include <string>

#include "app/cli/settings.h"

namespace vllm {

// Standard input when it is no terminal or "-" is among the arguments, a line break, then the arguments joined by
// spaces; the line break that ends piped text is dropped. None when neither brings anything (an empty argument counts
// as one). Throws ConfigError.
std::optional<std::string> ReadPrompt(const Settings& settings);

}  // namespace vllm
