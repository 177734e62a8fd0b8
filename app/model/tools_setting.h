// --tools: the tools that the chat template shows to the model, and their commands. Main thread.
#pragma once

#include <string>
#include <vector>

#include "app/cli/settings.h"
#include "app/model/prompt_renderer.h"
#include "app/tools/local_tools.h"
#include "engine/tool_calls/syntax/tool_call_format.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

// Returns the tools of --tools as the text of a JSON array, for PromptRenderer::SetTools, or "" if there are none.
// Asks programs for their schemas. Prints a warning if the template ignores tools. Throws ConfigError if a definition
// is invalid, or if a file cannot be read or exceeds 1 MiB; ResourceError.
std::string ReadTools(const Settings& settings, const PromptRenderer& renderer);

// Returns the tools of --tools for calls. Those of a JSON array have no command. Throws ConfigError, ResourceError,
// Interrupted.
std::vector<LocalTool> ReadLocalTools(const Settings& settings);

// Returns the format in which the model writes calls: that of --tool-call-parser, or the one that its template or
// vocabulary implies. Returns null if the format is unknown or `none`. Throws ConfigError if no parser has the name.
const ToolCallFormat* ModelToolCallFormat(const Settings& settings, const PromptRenderer& renderer,
                                          const tokenizer::Tokenizer& tokenizer);

}  // namespace vllm::app
