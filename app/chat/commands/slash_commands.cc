#include "app/chat/commands/slash_commands.h"

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
#include "app/chats/sqlite.h"
#include "app/cli/parse_value.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Handler = SlashResult (*)(const std::string& arguments, ChatSession& session);

struct SlashCommand {
  std::string_view name;
  std::string_view aliases;  // separated by spaces
  std::string_view arguments;
  std::string_view help;
  Handler run;
};

std::span<const SlashCommand> SlashCommands();

SlashResult Help(const std::string& arguments, ChatSession&) {
  const std::string name = arguments.starts_with('/') || arguments.empty() ? arguments : "/" + arguments;
  const std::vector<std::string> names = SlashCommandNames();
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
    PrintError("/help " + arguments + ": no such command; /help lists all commands");
    return {};
  }
  for (const SlashCommand& command : SlashCommands()) {
    const std::vector<std::string> aliases = SplitWords(std::string(command.aliases));
    if (!name.empty() && command.name != name && std::find(aliases.begin(), aliases.end(), name) == aliases.end()) {
      continue;
    }
    std::string line = "  " + std::string(command.name) + " " + std::string(command.arguments);
    line.append(line.size() < 26 ? 26 - line.size() : 1, ' ');
    PrintNote(line + std::string(command.help));
  }
  if (!name.empty()) return {};
  PrintNote("Alt-Enter or Ctrl-J begins a new line; Ctrl-G opens the message in an editor; @FILE puts a file into it.");
  PrintNote("Ctrl-C stops an answer; Ctrl-D on an empty line quits. Begin a line with // to send it with one slash.");
  return {};
}

SlashResult Quit(const std::string&, ChatSession&) { return {.quits = true, .draft = std::nullopt}; }

constexpr auto kSlashCommands = std::to_array<SlashCommand>({
    {"/help", "", "[COMMAND]", "list these commands, or describe one", Help},
    {"/new", "/clear", "", "begin a new conversation; if the old one is stored, /resume returns to it", NewCommand},
    {"/resume", "", "[NUMBER|TEXT]", "continue a stored conversation; without an argument, choose one", ResumeCommand},
    {"/undo", "", "[N]", "take back the last turn (a question and its answer), or the last N turns", UndoCommand},
    {"/redo", "", "", "reverse the last /undo, if the conversation has not changed since", RedoCommand},
    {"/regen", "/retry /regenerate", "[NAME=VALUE...]",
     "answer the last question again; NAME=VALUE changes a setting for this answer", RegenerateCommand},
    {"/answers", "", "[N [NAME=VALUE...]]", "generate N more answers to the last question at once; without N, list all",
     AnswersCommand},
    {"/pick", "", "N", "continue with answer N of /answers", PickCommand},
    {"/continue", "", "", "resume the last answer if it was interrupted or reached max-tokens", ContinueCommand},
    {"/edit", "", "[N]", "change the last question, or the N-th from the end, in a new branch", EditCommand},
    {"/next", "", "", "go to the next version of this answer or question", NextCommand},
    {"/prev", "", "", "go to the previous version", PreviousCommand},
    {"/tree", "", "", "show all branches and go to one of their messages", TreeCommand},
    {"/fork", "", "[TITLE]", "copy the current branch to a new conversation and continue there", ForkCommand},
    {"/delete", "", "[yes]", "delete this conversation; without yes, only say what would be deleted", DeleteCommand},
    {"/copy", "", "[K]", "copy the last answer, or its K-th code block, to the clipboard", CopyCommand},
    {"/save-code", "", "K FILE", "write the K-th code block of the last answer to a new file", SaveCodeCommand},
    {"/title", "/rename", "[TEXT]", "set the title of this conversation; without TEXT, show it", TitleCommand},
    {"/search", "", "TEXT", "search all stored conversations", SearchCommand},
    {"/export", "", "FILE", "write the current branch to a new .md or .html file, or all branches to a new .json file",
     ExportCommand},
    {"/file", "", "PATH", "put a text file into the next message, as @PATH in a message does", FileCommand},
    {"/model", "", "[NAME]", "switch to another model in this conversation; without NAME, list the installed ones",
     ModelCommand},
    {"/system", "", "[TEXT]", "set the system message and begin a new conversation; without TEXT, show it",
     SystemCommand},
    {"/preset", "", "[NAME [VARIABLE=VALUE...]]",
     "begin a new conversation with a preset; /preset off: without one; without NAME, list the presets", PresetCommand},
    {"/set", "", "[NAME [VALUE]]",
     "change a sampling setting, context-shift, markdown or stats; without VALUE, show settings and their sources",
     SetCommand},
    {"/think", "", "[on|off|low|medium|high]", "switch the model's thinking; without an argument, show the settings",
     ThinkCommand},
    {"/thinking", "", "", "print the thought before the last answer", ThinkingCommand},
    {"/raw", "", "", "switch between rendered Markdown and plain text, and print the last answer as plain text",
     RawCommand},
    {"/info", "/show", "", "show the model, its chat template, the context and where the conversation is stored",
     InfoCommand},
    {"/stats", "", "", "show statistics of the last answer and of the engine", StatsCommand},
    {"/engine", "", "", "show the engine at work: requests, token rates, KV blocks; q returns to the chat",
     EngineCommand},
    {"/batch", "", "", "show the progress of the batch behind this chat (batch --chat)", BatchProgressCommand},
    {"/exit", "/quit /bye", "", "quit", Quit},
});

std::span<const SlashCommand> SlashCommands() { return kSlashCommands; }

}  // namespace

std::vector<std::string> SlashCommandNames() {
  std::vector<std::string> names;
  for (const SlashCommand& command : kSlashCommands) {
    names.emplace_back(command.name);
    for (std::string& alias : SplitWords(std::string(command.aliases))) names.push_back(std::move(alias));
  }
  return names;
}

std::vector<CommandCompleter::Command> SlashCommandDescriptions() {
  std::vector<CommandCompleter::Command> commands;
  for (const SlashCommand& command : kSlashCommands) {
    commands.push_back({std::string(command.name), std::string(command.help)});
    for (std::string& alias : SplitWords(std::string(command.aliases))) {
      commands.push_back({std::move(alias), "the same as " + std::string(command.name), true});
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
  for (const SlashCommand& command : kSlashCommands) {
    const std::vector<std::string> aliases = SplitWords(std::string(command.aliases));
    if (command.name != name && std::find(aliases.begin(), aliases.end(), name) == aliases.end()) continue;
    try {
      return command.run(arguments, session);
    } catch (const ConfigError& error) {
      PrintError(error.what(), error.hint());
    } catch (const ResourceError& error) {
      PrintError(error.what());
    } catch (const StoreError& error) {
      PrintError(error.what());
    }
    return {};
  }
  const std::string near = NearestName(name, SlashCommandNames());
  PrintError("unknown command " + name + (near.empty() ? "; see /help" : "; did you mean " + near + "?"));
  return {};
}

}  // namespace vllm::app
