// Full-screen lists of the messages of a conversation and of the stored conversations. They use the whole terminal
// until they return. Meanwhile they serve the batch behind the chat, if there is one. Main thread.
#pragma once

#include <cstdint>
#include <optional>

#include "app/chats/chat_store.h"
#include "app/chats/chat_tree.h"
#include "app/output/run_until_done.h"

namespace vllm::app {

// Returns true if standard input and output are a terminal that can show a list.
bool CanPick();

// Shows all branches of a conversation. Returns the message that the user chose, or nullopt. `background` may be null.
// Throws Interrupted, ResourceError, EngineDeadError. REQUIRES: CanPick().
std::optional<int64_t> PickMessage(const ChatTree& tree, LLMEngine& engine, const BackgroundWork* background);

// Shows the newest stored conversations, with search in their titles, and deletes those that the user wants to delete.
// `current` is the one that this process has open, or 0; it cannot be deleted. Returns the conversation that the user
// chose, or nullopt. `background` may be null. Throws Interrupted, ResourceError, StoreError, EngineDeadError.
// REQUIRES: CanPick(); `store` is open for writing.
std::optional<int64_t> PickChat(ChatStore& store, int64_t current, LLMEngine& engine, const BackgroundWork* background);

}  // namespace vllm::app
