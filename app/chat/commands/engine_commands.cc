#include "app/chat/commands/engine_commands.h"

#include <unistd.h>

#include <utility>

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
  const LoadedModel& model = session.model();
  LiveViewerOptions options;
  if (model.background != nullptr) {
    options.on_tick = [&model] { ServeBackground(*model.engine, *model.background); };
    options.tick_fd = model.engine->OutputFd();
  }
  LiveViewer viewer(connection, std::move(options));
  viewer.Run();
  return {};
}

SlashResult BatchProgressCommand(const std::string&, ChatSession& session) {
  const BackgroundWork* background = session.model().background;
  if (background == nullptr) {
    PrintError("/batch: no batch runs behind this chat",
               "vllmcli batch INPUT -o OUTPUT --chat opens a chat on a batch");
  } else {
    PrintNote("  " + background->progress_text());
  }
  return {};
}

}  // namespace vllm::app
