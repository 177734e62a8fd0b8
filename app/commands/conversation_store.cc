#include "app/commands/conversation_store.h"

#include <string>

#include "app/cli/xdg.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {

bool StoresConversations(const Settings& settings) { return settings.Switch("save") && !settings.Switch("ephemeral"); }

std::unique_ptr<ChatStore> OpenStore(const Settings& settings) {
  if (!StoresConversations(settings)) return nullptr;
  const std::string directory = DataHome();
  if (directory.empty()) {
    PrintWarning("this chat is not stored: neither XDG_DATA_HOME nor HOME is an absolute path");
    return nullptr;
  }
  try {
    return std::make_unique<ChatStore>(directory, ChatStore::Access::kWrite);
  } catch (const StoreError& error) {
    PrintWarning(std::string("this chat is not stored: ") + error.what());
    return nullptr;
  }
}

void CheckCanContinue(const Settings& settings, const ChatStore* store) {
  const std::string command(CommandInfoOf(settings.command).name);
  if (store == nullptr) throw ConfigError(command + ": no conversation to continue, because none are stored");
  if (settings.SourceOf("system") == SettingSource::kCommandLine) {
    throw ConfigError(command + ": --system cannot change a stored conversation");
  }
}

void NoteUnusedSystem(const Settings& settings, const ChatSession& session) {
  if (!settings.Has("system") || settings.Text("system") == session.system()) return;
  PrintStatus("[the system message of the " + std::string(SettingSourceName(settings.SourceOf("system"))) +
              " is not used: a stored conversation keeps its own]");
}

}  // namespace vllm::app
