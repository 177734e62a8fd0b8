// The slash commands that show or change settings, or show the state of the model and the engine. They throw
// ConfigError, which RunSlashCommand prints. The functions keep no state; main thread.
#pragma once

#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"

namespace vllm::app {

// /lora: chooses a LoRA adapter, or lists them.
SlashResult LoRACommand(const std::string& arguments, ChatSession& session);
SlashResult SystemCommand(const std::string& arguments, ChatSession& session);
SlashResult SetCommand(const std::string& arguments, ChatSession& session);
SlashResult SchemaCommand(const std::string& arguments, ChatSession& session);
SlashResult InfoCommand(const std::string& arguments, ChatSession& session);
SlashResult StatsCommand(const std::string& arguments, ChatSession& session);

}  // namespace vllm::app
