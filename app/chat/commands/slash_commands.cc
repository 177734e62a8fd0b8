#include "app/chat/commands/slash_commands.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "app/chat/commands/answer_commands.h"
#include "app/chat/commands/chat_input.h"
#include "app/chat/commands/conversation_commands.h"
#include "app/chat/commands/display_commands.h"
#include "app/chat/commands/engine_commands.h"
#include "app/chat/commands/preset_commands.h"
#include "app/chat/commands/settings_commands.h"
#include "app/chat/commands/thinking_commands.h"
#include "app/chat/commands/tool_commands.h"
#include "app/chats/sqlite.h"
#include "app/cli/parse_value.h"
#include "app/cli/slash_command_table.h"
#include "app/cli/wrap_words.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {
namespace {

using Handler = SlashResult (*)(const std::string& arguments, ChatSession& session);

SlashResult Help(const std::string& arguments, ChatSession&) {
  const std::string name = arguments.starts_with('/') || arguments.empty() ? arguments : "/" + arguments;
  const SlashCommandInfo* found = FindSlashCommand(name);
  if (!name.empty() && found == nullptr) {
    PrintError("/help " + arguments + ": no such command; /help lists all commands");
    return {};
  }
  const auto width = static_cast<size_t>(TerminalColumns(STDERR_FILENO));
  std::string text;
  for (const SlashCommandInfo& command : SlashCommandTable()) {
    if (found != nullptr && &command != found) continue;
    const std::string usage = std::string(command.name) + (command.arguments.empty() ? "" : " ");
    AppendEntry(usage + std::string(command.arguments), 27, command.help, width, text);
  }
  if (name.empty()) {
    for (const char* hint : {"Alt-Enter or Ctrl-J begins a new line; Ctrl-G opens the message in an editor; @FILE puts "
                             "a file into it.",
                             "Ctrl-C stops an answer; Ctrl-D on an empty line quits. Begin a line with // to send it "
                             "with one slash."}) {
      AppendWrapped(hint, 0, 0, width, text);
    }
  }
  text.pop_back();
  PrintNoteLines(text);
  return {};
}

SlashResult Quit(const std::string&, ChatSession&) { return {.quits = true, .draft = std::nullopt}; }

constexpr auto kHandlers = std::to_array<std::pair<std::string_view, Handler>>({
    {"/help", Help},
    {"/new", NewCommand},
    {"/resume", ResumeCommand},
    {"/undo", UndoCommand},
    {"/redo", RedoCommand},
    {"/regen", RegenerateCommand},
    {"/answers", AnswersCommand},
    {"/pick", PickCommand},
    {"/continue", ContinueCommand},
    {"/edit", EditCommand},
    {"/next", NextCommand},
    {"/prev", PreviousCommand},
    {"/tree", TreeCommand},
    {"/fork", ForkCommand},
    {"/delete", DeleteCommand},
    {"/copy", CopyCommand},
    {"/save-code", SaveCodeCommand},
    {"/title", TitleCommand},
    {"/search", SearchCommand},
    {"/export", ExportCommand},
    {"/file", FileCommand},
    {"/model", ModelCommand},
    {"/lora", LoRACommand},
    {"/system", SystemCommand},
    {"/preset", PresetCommand},
    {"/set", SetCommand},
    {"/schema", SchemaCommand},
    {"/tools", ToolsCommand},
    {"/think", ThinkCommand},
    {"/thinking", ThinkingCommand},
    {"/raw", RawCommand},
    {"/info", InfoCommand},
    {"/stats", StatsCommand},
    {"/engine", EngineCommand},
    {"/batch", BatchProgressCommand},
    {"/exit", Quit},
});

// Returns null if there is none.
Handler HandlerOf(std::string_view name) {
  const auto* handler =
      std::find_if(kHandlers.begin(), kHandlers.end(), [&](const auto& entry) { return entry.first == name; });
  return handler == kHandlers.end() ? nullptr : handler->second;
}

}  // namespace

bool HasHandler(std::string_view name) { return HandlerOf(name) != nullptr; }

std::vector<std::string> SlashCommandNames() {
  std::vector<std::string> names;
  for (const SlashCommandInfo& command : SlashCommandTable()) {
    for (std::string& name : NamesOf(command)) names.push_back(std::move(name));
  }
  return names;
}

std::vector<CommandCompleter::Command> SlashCommandDescriptions() {
  std::vector<CommandCompleter::Command> commands;
  for (const SlashCommandInfo& command : SlashCommandTable()) {
    for (const std::string& name : NamesOf(command)) {
      const bool is_alias = name != command.name;
      commands.push_back(
          {name, is_alias ? "the same as " + std::string(command.name) : std::string(command.help), is_alias});
    }
  }
  return commands;
}

SlashResult RunSlashCommand(const std::string& line, ChatSession& session) {
  const size_t space = line.find_first_of(" \t\n");
  const std::string name = line.substr(0, space);
  std::string arguments = space == std::string::npos ? "" : line.substr(space + 1);
  arguments.erase(0, arguments.find_first_not_of(" \t"));
  arguments.erase(arguments.find_last_not_of(" \t\n") + 1);
  const SlashCommandInfo* command = FindSlashCommand(name);
  if (command == nullptr) {
    const std::string near = NearestName(name, SlashCommandNames());
    PrintError("unknown command " + name + (near.empty() ? "; see /help" : "; did you mean " + near + "?"));
    return {};
  }
  try {
    return HandlerOf(command->name)(arguments, session);
  } catch (const ConfigError& error) {
    PrintError(error.what(), error.hint());
  } catch (const ResourceError& error) {
    PrintError(error.what());
  } catch (const StoreError& error) {
    PrintError(error.what());
  } catch (const tokenizer::EncodingStopped&) {
    TakeInterrupt();
    PrintNote("[interrupted]");
  }
  return {};
}

}  // namespace vllm::app
