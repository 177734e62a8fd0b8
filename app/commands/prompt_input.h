// The prompt of run and complete: text piped to standard input, joined with the words of the command line, and files.
// Main thread.
#pragma once

#include <optional>
#include <string>

#include "app/cli/settings.h"
#include "app/presets/preset_prompt.h"

namespace vllm::app {

// Returns the text of standard input, followed by the arguments except "-", joined with spaces. If there are both, a
// line break separates them. Standard input is read if "-" is among the arguments, or if it is open and neither a
// terminal nor a directory. One line break at its end is dropped. Returns nullopt if standard input is empty or not
// read and there is no argument other than "-". Replaces invalid UTF-8 by U+FFFD, with a warning. Throws ConfigError if
// standard input cannot be read or is too long. Throws Interrupted.
//
// The files of --file follow, as in WithFiles. The file "-" is standard input, which then is not part of the rest.
// Throws ConfigError if a file cannot be sent.
std::optional<std::string> ReadPrompt(const Settings& settings);

// Returns the text of ReadPrompt, or "" if there is none and the preset's prompt needs none. Throws as ReadPrompt, and
// ConfigError if there is no text although it is needed.
std::string ReadRequiredPrompt(const Settings& settings, const std::optional<PresetPrompt>& preset);

}  // namespace vllm::app
