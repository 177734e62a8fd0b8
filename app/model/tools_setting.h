// --tools: definitions of tools that the chat template shows to the model. Any thread.
#pragma once

#include "app/cli/settings.h"
#include "app/model/prompt_renderer.h"

namespace vllm::app {

// Gives the renderer the tools of --tools, or none if it is not set. Prints a warning if the template ignores tools.
// Throws ConfigError if the value is not a JSON array of objects, or the file cannot be read or exceeds 1 MiB;
// ResourceError.
void ApplyTools(const Settings& settings, PromptRenderer& renderer);

}  // namespace vllm::app
