#include "app/chat/slash_commands.h"

#include <array>
#include <string_view>

#include "app/cli/parse_value.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

struct SlashCommand {
  std::string_view name;
  std::string_view arguments;
  std::string_view help;
};

constexpr std::array<SlashCommand, 9> kSlashCommands = {{
    {"/help", "", "list these commands"},
    {"/clear", "", "start the conversation over"},
    {"/system", "[TEXT]", "set the system message and start over; without TEXT, show it"},
    {"/set", "[NAME [VALUE]]", "change a sampling setting; without VALUE, show one or all settings with their sources"},
    {"/show", "", "describe the model and its context"},
    {"/stats", "", "show statistics of the last answer and of the engine"},
    {"/exit", "", "quit"},
    {"/quit", "", "quit"},
    {"/bye", "", "quit"},
}};

void PrintHelp() {
  for (const SlashCommand& command : kSlashCommands) {
    std::string line = "  " + std::string(command.name) + " " + std::string(command.arguments);
    line.append(line.size() < 24 ? 24 - line.size() : 1, ' ');
    PrintNote(line + std::string(command.help));
  }
  PrintNote("Ctrl-C stops an answer; Ctrl-D on an empty line quits.");
}

// Prints the value and the source of the setting called `name`, or of all settings if `name` is empty.
void PrintSettings(const ChatSession& session, const std::string& name) {
  const Flag* flag = FindFlag(name);  // accepts top_p for top-p
  bool found = false;
  for (const SamplingValue& value : session.model().sampling_values) {
    if (!name.empty() && (flag == nullptr || value.name != flag->name)) continue;
    found = true;
    std::string line = "  " + value.name;
    line.append(line.size() < 30 ? 30 - line.size() : 1, ' ');
    line += value.value == "null" || value.value == "[]" ? "none" : value.value;
    line.append(line.size() < 40 ? 40 - line.size() : 1, ' ');
    PrintNote(line + "(" + value.source + ")");
  }
  if (!found) PrintError(UnknownSettingText(name));
}

void PrintModel(const ChatSession& session) {
  const VllmConfig& config = session.model().engine->config();
  const auto num_turns = session.conversation().num_turns();
  const ModelLocation& location = session.model().location;
  PrintNote("  model    " + location.name + (location.name == location.path() ? "" : " (" + location.path() + ")"));
  PrintNote("  kind     " + config.model.architecture + ", " + std::string(ToString(config.model.dtype)));
  PrintNote("  context  " + std::to_string(session.model().engine->max_model_len()) + " tokens, " +
            std::to_string(session.conversation().num_tokens()) + " in use, " + std::to_string(num_turns) +
            (num_turns == 1 ? " turn" : " turns"));
  PrintNote("  template " + session.model().renderer->source().origin);
}

}  // namespace

std::vector<std::string> SlashCommandNames() {
  std::vector<std::string> names;
  names.reserve(std::size(kSlashCommands));
  for (const SlashCommand& command : kSlashCommands) names.emplace_back(command.name);
  return names;
}

bool RunSlashCommand(const std::string& line, ChatSession& session) {
  const size_t space = line.find_first_of(" \t\n");
  const std::string name = line.substr(0, space);
  std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  rest.erase(0, rest.find_first_not_of(" \t"));
  rest.erase(rest.find_last_not_of(" \t\n") + 1);
  if (name == "/exit" || name == "/quit" || name == "/bye") return false;
  if (name == "/help") {
    PrintHelp();
  } else if (name == "/clear") {
    session.Clear();
    PrintNote("[conversation cleared]");
  } else if (name == "/system") {
    if (rest.empty()) {
      const std::string& system = session.conversation().system();
      PrintNoteLines(system.empty() ? "[no system message]" : system);
    } else if (!session.model().renderer->takes_system_message()) {
      PrintError("the chat template does not support a system message");
    } else {
      session.SetSystem(rest);
      PrintNote("[system message set; the conversation starts over]");
    }
  } else if (name == "/set") {
    const size_t gap = rest.find_first_of(" \t");
    if (gap == std::string::npos) {
      PrintSettings(session, rest);
    } else {
      try {
        session.Set(rest.substr(0, gap), rest.substr(rest.find_first_not_of(" \t", gap)));
      } catch (const ConfigError& error) {
        PrintError(error.what());
      }
    }
  } else if (name == "/show") {
    PrintModel(session);
  } else if (name == "/stats") {
    PrintNote(RequestStatsText(session.last_stats()));
    for (const std::string& text : StatsLines(*session.model().engine)) PrintNote(text);
  } else {
    const std::string near = NearestName(name, SlashCommandNames());
    PrintError("unknown command " + name + (near.empty() ? "; see /help" : "; did you mean " + near + "?"));
  }
  return true;
}

}  // namespace vllm::app
