#include "app/chat/commands/engine_commands.h"

#include <unistd.h>

#include "app/live/live_connection.h"
#include "app/live/view/live_viewer.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {

SlashResult EngineCommand(const std::string&, ChatSession& session) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 || !CanUseScreen()) {
    PrintError("/engine: needs a terminal; /stats prints the engine's statistics");
    return {};
  }
  LocalConnection connection(session.model().publisher->source());
  LiveViewer viewer(connection, {});
  viewer.Run();
  return {};
}

}  // namespace vllm::app
