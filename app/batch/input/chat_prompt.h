// Builds the prompt of a chat row by rendering its messages, tools and template variables with the chat template. The
// functions keep no state; any thread.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/model/prompt_renderer.h"

namespace vllm::app {

// Returns true if ChatPrompt reads the field called `name`.
bool IsChatField(const std::string& name);

// Renders messages, tools, add_generation_prompt, reasoning_effort and chat_template_kwargs of `body`. Puts the system
// message `system` in front, unless `system` is empty or the first message is a system message. Throws RowError, also
// if `renderer` is null. REQUIRES: `body` is an object.
std::string ChatPrompt(const nlohmann::ordered_json& body, const std::string& system, const PromptRenderer* renderer);

}  // namespace vllm::app
