// The steps that chat and run share if they store conversations. Main thread.
#pragma once

#include <memory>

#include "app/chat/chat_session.h"
#include "app/chats/chat_store.h"
#include "app/cli/settings.h"

namespace vllm::app {

// Returns false with --no-save and --ephemeral.
bool StoresConversations(const Settings& settings);
// Opens the database of conversations. If that fails, warns and returns null: the chat works without it.
std::unique_ptr<ChatStore> OpenStore(const Settings& settings);
// Throws ConfigError if no stored conversation can be continued with these settings.
void CheckCanContinue(const Settings& settings, const ChatStore* store);
// Says that the settings' system message is not used, if the conversation that `session` continues has another one.
void NoteUnusedSystem(const Settings& settings, const ChatSession& session);

}  // namespace vllm::app
