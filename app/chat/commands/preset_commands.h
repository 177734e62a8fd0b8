// The slash command /preset, and the notes that a chat prints about its preset. The functions keep no state; main
// thread.
#pragma once

#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"

namespace vllm::app {

// Runs /preset: without arguments, lists the presets; with "off", ends the use of one; with "NAME NAME=VALUE...", uses
// one. A word without "=" continues the value before it, so that values may contain spaces.
SlashResult PresetCommand(const std::string& arguments, ChatSession& session);

// Prints which preset the chat uses, and which parts of it a chat does not use. REQUIRES: the session has a preset.
void PrintPresetNotes(const ChatSession& session);

}  // namespace vllm::app
