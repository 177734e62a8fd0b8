#include "app/commands/chat_loop.h"
#include "app/commands/commands.h"
#include "engine/config/errors.h"

namespace vllm::app {

int ChatCommand(const Settings& given) {
  Settings settings = given;
  if (!settings.arguments.empty()) {
    throw ConfigError("chat: unexpected argument; use vllmcli run to answer one prompt",
                      "vllmcli run 'TEXT' answers one prompt; vllmcli chat -m MODEL chats with a model");
  }
  std::optional<PresetPrompt> preset = PresetOf(settings);
  if (preset) preset->CheckVariables();
  LoadedModel model = LoadModel(settings);
  RunChat(model, settings, preset);
  return 0;
}

}  // namespace vllm::app
