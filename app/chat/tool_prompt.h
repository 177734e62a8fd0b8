// Describes tools in the system message, for chat templates that do not show them: in the form of Hermes models, which
// many others have seen in their training. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/jinja/chat_template.h"

namespace vllm::app {

// Returns the text for the system message. `tools_json` is a JSON array in OpenAI's format.
std::string ToolPrompt(const std::string& tools_json);

// Adds the text, unless it is empty, to the system message, or adds a system message. Writes calls into the text of
// answers, and the results of tools into messages of the user.
std::vector<tokenizer::ChatMessage> WithToolPrompt(std::vector<tokenizer::ChatMessage> messages,
                                                   const std::string& tool_prompt);

}  // namespace vllm::app
