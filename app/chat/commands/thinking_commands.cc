#include "app/chat/commands/thinking_commands.h"

#include <chrono>

#include "app/output/thinking_display.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {

SlashResult ThinkCommand(const std::string& arguments, ChatSession& session) {
  if (!arguments.empty()) {
    session.SetThink(arguments);
    return {};
  }
  const Settings& settings = session.settings();
  PrintNote("  think          " + settings.Text("think").value_or("as the chat template decides"));
  PrintNote("  show-thinking  " + settings.Text("show-thinking").value_or("summary"));
  const auto& format = session.model().reasoning_format;
  PrintNote("  format         " + (format == nullptr ? "none known" : std::string(format->family->name)));
  return {};
}

SlashResult ThinkingCommand(const std::string&, ChatSession& session) {
  const std::vector<const StoredMessage*> path = session.tree().PathTo(session.tree().current_id());
  for (auto message = path.rbegin(); message != path.rend(); ++message) {
    if ((*message)->thinking.empty()) continue;
    PrintNoteLines((*message)->thinking);
    PrintNote("[" + ThoughtSummary(std::chrono::milliseconds((*message)->thinking_ms), (*message)->num_thinking_ids) +
              "]");
    return {};
  }
  PrintNote("[no answer of this conversation has a thought]");
  return {};
}

}  // namespace vllm::app
