// --tools: definitions of tools that the chat template shows to the model. Any thread.
#pragma once

#include <string>

#include "app/cli/settings.h"
#include "app/model/prompt_renderer.h"

namespace vllm::app {

// Returns the tools of --tools as the text of a JSON array, for PromptRenderer::SetTools, or "" if there are none.
// Prints a warning if the template ignores tools. Throws ConfigError if the value is not a JSON array of objects, or if
// the file cannot be read or exceeds 1 MiB; ResourceError.
std::string ReadTools(const Settings& settings, const PromptRenderer& renderer);

}  // namespace vllm::app
