#include "app/chat/commands/display_commands.h"

#include <algorithm>

#include "app/chat/commands/answer_commands.h"
#include "app/markdown/answer_display.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {

bool SetDisplay(const std::string& name, const std::string& value, ChatSession& session) {
  if (std::find(kDisplaySettings.begin(), kDisplaySettings.end(), name) == kDisplaySettings.end()) return false;
  bool& setting = name == "markdown" ? session.display().markdown : session.display().stats_line;
  if (value.empty()) {
    std::string line = "  " + name;
    line.append(line.size() < 30 ? 30 - line.size() : 1, ' ');
    PrintNote(line + (setting ? "on" : "off"));
  } else if (value == "on" || value == "off") {
    setting = value == "on";
  } else {
    throw ConfigError("/set " + name + " " + value + ": not on or off");
  }
  return true;
}

SlashResult RawCommand(const std::string&, ChatSession& session) {
  bool& renders = session.display().markdown;
  renders = !renders;
  if (renders) {
    PrintNote("[answers are rendered as Markdown]");
    return {};
  }
  PrintNote("[answers are plain text; /raw again renders them]");
  const StoredMessage* answer = FindLastAnswer(session);
  if (answer != nullptr) PlainDisplay(StandardOutput()).Feed(answer->text, true);
  return {};
}

}  // namespace vllm::app
