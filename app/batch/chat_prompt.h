// The prompt of a "messages" row: its messages, tools and template variables -> the text the chat template makes.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/model/prompt_renderer.h"

namespace vllm {

// Whether `name` is a field that ChatPrompt reads.
bool IsChatField(const std::string& name);

// Reads messages, tools, add_generation_prompt and chat_template_kwargs of `body`. `system` is put in front unless it
// is empty or the messages begin with one. Throws RowError. REQUIRES: `body` is an object.
std::string ChatPrompt(const nlohmann::ordered_json& body, const std::string& system, const PromptRenderer* renderer);

}  // namespace vllm
