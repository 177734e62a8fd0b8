#include "app/cli/slash_command_table.h"

#include <algorithm>
#include <array>

namespace vllm::app {
namespace {

constexpr auto kSlashCommands = std::to_array<SlashCommandInfo>({
    {"/help", "", "[COMMAND]", "list these commands, or describe one"},
    {"/new", "/clear", "", "begin a new conversation; if the old one is stored, /resume returns to it"},
    {"/resume", "", "[NUMBER|TEXT]", "continue a stored conversation; without an argument, choose one"},
    {"/undo", "", "[N]", "take back the last turn (a question and its answer), or the last N turns"},
    {"/redo", "", "", "reverse the last /undo, if the conversation has not changed since"},
    {"/regen", "/retry /regenerate", "[NAME=VALUE...]",
     "answer the last question again; NAME=VALUE changes a setting for this answer"},
    {"/answers", "", "[N [NAME=VALUE...]]",
     "generate N more answers to the last question at once; without N, list all"},
    {"/pick", "", "N", "continue with answer N of /answers"},
    {"/continue", "", "", "resume the last answer if it was interrupted or reached max-tokens"},
    {"/edit", "", "[N]", "change the last question, or the N-th from the end, in a new branch"},
    {"/next", "", "", "go to the next version of this answer or question"},
    {"/prev", "", "", "go to the previous version"},
    {"/tree", "", "", "show all branches and go to one of their messages"},
    {"/fork", "", "[TITLE]", "copy the current branch to a new conversation and continue there"},
    {"/delete", "", "[yes]", "delete this conversation; without yes, only say what would be deleted"},
    {"/copy", "", "[K]", "copy the last answer, or its K-th code block, to the clipboard"},
    {"/save-code", "", "K FILE", "write the K-th code block of the last answer to a new file"},
    {"/title", "/rename", "[TEXT]", "set the title of this conversation; without TEXT, show it"},
    {"/search", "", "TEXT", "search all stored conversations"},
    {"/export", "", "FILE", "write the current branch to a new .md or .html file, or all branches to a new .json file"},
    {"/file", "", "PATH", "put a text file into the next message, as @PATH in a message does"},
    {"/model", "", "[NAME]", "switch to another model in this conversation; without NAME, list the installed ones"},
    {"/lora", "", "[NAME[=PATH]|off]",
     "use a LoRA adapter from the next message on; with PATH, load it first; without NAME, list them"},
    {"/system", "", "[TEXT]", "set the system message and begin a new conversation; without TEXT, show it"},
    {"/preset", "", "[NAME [VARIABLE=VALUE...]]",
     "begin a new conversation with a preset; /preset off: without one; without NAME, list the presets"},
    {"/set", "", "[NAME [VALUE]]",
     "change a sampling setting, context-shift, markdown or stats; without VALUE, show settings and their sources"},
    {"/schema", "", "[FILE|FIELDS|off]",
     "answer with JSON: by a JSON Schema in a file, or with fields such as name, age int; without an argument, show "
     "it"},
    {"/tools", "", "[on|off|ask]",
     "list the tools; off: hide them from the model; on: show them again; ask: ask before every call again"},
    {"/think", "", "[on|off|low|medium|high]", "switch the model's thinking; without an argument, show the settings"},
    {"/thinking", "", "", "print the thought before the last answer"},
    {"/raw", "", "", "switch between rendered Markdown and plain text, and print the last answer as plain text"},
    {"/info", "/show", "", "show the model, its chat template, the context and where the conversation is stored"},
    {"/stats", "", "", "show statistics of the last answer and of the engine"},
    {"/engine", "", "", "show the engine at work: requests, token rates, KV blocks; q returns to the chat"},
    {"/batch", "", "", "show the progress of the batch behind this chat (batch --chat)"},
    {"/exit", "/quit /bye", "", "quit"},
});

}  // namespace

std::span<const SlashCommandInfo> SlashCommandTable() { return kSlashCommands; }

std::vector<std::string> NamesOf(const SlashCommandInfo& command) {
  std::vector<std::string> names = {std::string(command.name)};
  for (size_t begin = 0; begin < command.aliases.size();) {
    const size_t end = std::min(command.aliases.find(' ', begin), command.aliases.size());
    names.emplace_back(command.aliases.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

const SlashCommandInfo* FindSlashCommand(std::string_view name) {
  for (const SlashCommandInfo& command : kSlashCommands) {
    const std::vector<std::string> names = NamesOf(command);
    if (std::find(names.begin(), names.end(), name) != names.end()) return &command;
  }
  return nullptr;
}

}  // namespace vllm::app
