// --tools: definitions of tools that the chat template shows to the model. Any thread.
#pragma once

#include <string>

#include "app/cli/settings.h"
#include "app/model/prompt_renderer.h"
#include "engine/tool_calls/syntax/tool_call_format.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

// Returns the tools of --tools as the text of a JSON array, for PromptRenderer::SetTools, or "" if there are none.
// Prints a warning if the template ignores tools. Throws ConfigError if the value is not a JSON array of objects, or if
// the file cannot be read or exceeds 1 MiB; ResourceError.
std::string ReadTools(const Settings& settings, const PromptRenderer& renderer);

// Returns the format in which the model writes calls: that of --tool-call-parser, or the one that its template or
// vocabulary implies. Returns null if the format is unknown or `none`. Throws ConfigError if no parser has the name.
const ToolCallFormat* ModelToolCallFormat(const Settings& settings, const PromptRenderer& renderer,
                                          const tokenizer::Tokenizer& tokenizer);

}  // namespace vllm::app
