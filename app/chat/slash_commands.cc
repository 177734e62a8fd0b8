#include "app/chat/slash_commands.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string_view>

#include "app/chats/chat_export.h"
#include "app/cli/parse_value.h"
#include "app/output/list_text.h"
#include "app/output/request_stats.h"
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

// Splits at spaces, tabs and line breaks.
std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  size_t end = 0;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\n", end);
    if (begin == std::string::npos) return words;
    end = std::min(text.find_first_of(" \t\n", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
}

// Returns `text` as a positive number, or `fallback` if it is empty, or nullopt if it is neither.
std::optional<int64_t> Count(const std::string& text, int64_t fallback) {
  if (text.empty()) return fallback;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

void PrintMessage(const StoredMessage& message) {
  switch (message.role) {
    case ChatRole::kSystem:
      PrintNoteLines("[system] " + message.text);
      break;
    case ChatRole::kUser:
      PrintNoteLines(">>> " + message.text);
      break;
    case ChatRole::kAssistant:
      PrintNoteLines(message.text);
      if (message.finish_reason.empty() || message.finish_reason == "abort") PrintNote("[this answer was interrupted]");
      break;
  }
}

// Prints the last messages up to the current one.
void PrintConversation(const ChatSession& session) {
  constexpr size_t kMaxMessages = 10;
  const std::vector<const StoredMessage*> path = session.tree().PathTo(session.tree().current_id());
  const size_t first = path.size() > kMaxMessages ? path.size() - kMaxMessages : 0;
  if (first > 0) PrintNote("[" + std::to_string(first) + " earlier messages]");
  for (size_t i = first; i < path.size(); ++i) PrintMessage(*path[i]);
  if (!path.empty() && path.back()->role == ChatRole::kUser) {
    PrintNote("[this question has no answer; /regen answers it]");
  }
}

std::string SummaryLine(const ChatSummary& chat) {
  return "  " + std::to_string(chat.id) + "  " + LocalTimeText(chat.updated_ms) + "  " + FirstLine(chat.title, 60);
}

bool HasStore(const ChatSession& session) {
  if (session.store() != nullptr) return true;
  PrintError("conversations are not stored in this chat");
  return false;
}

SlashResult Help(const std::string&, ChatSession&) {
  for (const SlashCommand& command : SlashCommands()) {
    std::string line = "  " + std::string(command.name) + " " + std::string(command.arguments);
    line.append(line.size() < 26 ? 26 - line.size() : 1, ' ');
    PrintNote(line + std::string(command.help));
  }
  PrintNote("Ctrl-C stops an answer; Ctrl-D on an empty line quits. Begin a line with // to send it with one slash.");
  return {};
}

SlashResult New(const std::string&, ChatSession& session) {
  session.Begin();
  PrintNote(session.store() != nullptr ? "[new conversation; /resume lists the stored ones]" : "[new conversation]");
  return {};
}

SlashResult Resume(const std::string& arguments, ChatSession& session) {
  if (!HasStore(session)) return {};
  if (arguments.empty()) {
    const std::vector<ChatSummary> chats = session.store()->List(20);
    for (const ChatSummary& chat : chats) PrintNote(SummaryLine(chat));
    PrintNote(chats.empty() ? "[no stored conversations]" : "/resume NUMBER or /resume TEXT continues one.");
    return {};
  }
  ResumeChat(arguments, session);
  return {};
}

SlashResult Undo(const std::string& arguments, ChatSession& session) {
  const std::optional<int64_t> count = Count(arguments, 1);
  if (!count) {
    PrintError("/undo: not a positive number");
    return {};
  }
  const int64_t done = session.Undo(*count);
  PrintNote(done == 0   ? "[there is nothing to undo]"
            : done == 1 ? "[one turn taken back; /redo restores it]"
                        : "[" + std::to_string(done) + " turns taken back; /redo restores them]");
  return {};
}

SlashResult Redo(const std::string&, ChatSession& session) {
  if (session.Redo()) {
    PrintConversation(session);
  } else {
    PrintNote("[there is nothing to redo]");
  }
  return {};
}

SlashResult Regenerate(const std::string& arguments, ChatSession& session) {
  std::vector<SettingChange> changes;
  const std::vector<std::string> words = Words(arguments);
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t dashes = words[i].find_first_not_of('-');
    const size_t equals = words[i].find('=');
    if (dashes == std::string::npos || (equals == std::string::npos && i + 1 == words.size())) {
      PrintError("/regen " + words[i] + ": no value; for example, /regen temperature=0.2 or /regen --seed 5");
      return {};
    }
    if (equals != std::string::npos) {
      changes.emplace_back(words[i].substr(dashes, equals - dashes), words[i].substr(equals + 1));
    } else {
      changes.emplace_back(words[i].substr(dashes), words[i + 1]);
      ++i;
    }
  }
  session.Regenerate(changes);
  return {};
}

SlashResult Continue(const std::string&, ChatSession& session) {
  session.Continue();
  return {};
}

SlashResult Edit(const std::string& arguments, ChatSession& session) {
  const std::optional<int64_t> n = Count(arguments, 1);
  std::optional<std::string> text = n ? session.Edit(*n) : std::nullopt;
  if (!text) {
    PrintError(n ? "/edit: there is no such question" : "/edit: not a positive number");
    return {};
  }
  PrintNote("[the next message replaces this question in a new branch]");
  if (text->starts_with('/')) text->insert(0, "/");
  return {.quits = false, .draft = std::move(text)};
}

SlashResult MoveToSibling(ChatSession& session, int direction) {
  if (session.MoveToSibling(direction)) {
    PrintConversation(session);
  } else {
    PrintNote(direction > 0 ? "[there is no later version]" : "[there is no earlier version]");
  }
  return {};
}

SlashResult Next(const std::string&, ChatSession& session) { return MoveToSibling(session, 1); }
SlashResult Previous(const std::string&, ChatSession& session) { return MoveToSibling(session, -1); }

SlashResult Fork(const std::string&, ChatSession& session) {
  if (session.tree().empty()) {
    PrintNote("[the conversation is empty]");
    return {};
  }
  session.Fork();
  const int64_t id = session.tree().chat_id();
  PrintNote(id == 0 ? "[copied]" : "[copied to conversation " + std::to_string(id) + "]");
  return {};
}

SlashResult Title(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    PrintNote(session.tree().title().empty() ? "[no title]" : session.tree().title());
  } else {
    session.SetTitle(arguments);
  }
  return {};
}

SlashResult Search(const std::string& arguments, ChatSession& session) {
  if (!HasStore(session)) return {};
  const std::vector<SearchHit> hits = session.store()->Search(arguments, 20);
  for (const SearchHit& hit : hits) {
    PrintNote("  " + std::to_string(hit.chat) + "  " + FirstLine(hit.title, 40) + ": " + hit.snippet);
  }
  if (hits.empty()) PrintNote("[nothing found]");
  return {};
}

SlashResult Export(const std::string& arguments, ChatSession& session) {
  StoredChat chat;
  const int64_t id = session.tree().chat_id();
  if (std::optional<StoredChat> stored = id == 0 ? std::nullopt : session.store()->Load(id)) {
    chat = *std::move(stored);
  } else {
    chat.title = session.tree().title();
    chat.current_message = session.tree().current_id();
    chat.messages = session.tree().AllMessages();
  }
  WriteNewFile(arguments, ExportText(chat, arguments));
  PrintNote("[written to " + arguments + "]");
  return {};
}

SlashResult System(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    PrintNoteLines(session.system().empty() ? "[no system message]" : session.system());
  } else if (!session.model().renderer->takes_system_message()) {
    PrintError("the chat template does not support a system message");
  } else {
    session.BeginWithSystem(arguments);
    PrintNote("[system message set; a new conversation begins]");
  }
  return {};
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

SlashResult Set(const std::string& arguments, ChatSession& session) {
  const size_t gap = arguments.find_first_of(" \t");
  if (gap == std::string::npos) {
    PrintSettings(session, arguments);
  } else {
    session.Set(arguments.substr(0, gap), arguments.substr(arguments.find_first_not_of(" \t", gap)));
  }
  return {};
}

SlashResult Info(const std::string&, ChatSession& session) {
  const VllmConfig& config = session.model().engine->config();
  const auto num_turns = session.num_turns();
  const ModelLocation& location = session.model().location;
  PrintNote("  model    " + location.name + (location.name == location.path() ? "" : " (" + location.path() + ")"));
  PrintNote("  kind     " + config.model.architecture + ", " + std::string(ToString(config.model.dtype)));
  PrintNote("  context  " + std::to_string(session.model().engine->max_model_len()) + " tokens, " +
            std::to_string(session.num_tokens()) + " in use, " + std::to_string(num_turns) +
            (num_turns == 1 ? " turn" : " turns"));
  PrintNote("  template " + session.model().renderer->source().origin);
  const int64_t id = session.tree().chat_id();
  if (id != 0) {
    PrintNote("  stored   conversation " + std::to_string(id) + " in " + session.store()->path());
  } else {
    PrintNote(session.store() == nullptr ? "  stored   no" : "  stored   with the first message");
  }
  return {};
}

SlashResult Stats(const std::string&, ChatSession& session) {
  PrintNote(RequestStatsText(session.last_stats()));
  for (const std::string& text : StatsLines(*session.model().engine)) PrintNote(text);
  return {};
}

SlashResult Quit(const std::string&, ChatSession&) { return {.quits = true, .draft = std::nullopt}; }

constexpr std::array<SlashCommand, 19> kSlashCommands = {{
    {"/help", "", "", "list these commands", Help},
    {"/new", "/clear", "", "begin a new conversation; if the old one is stored, /resume returns to it", New},
    {"/resume", "", "[NUMBER|TEXT]", "continue a stored conversation; without an argument, list the last 20", Resume},
    {"/undo", "", "[N]", "take back the last turn (a question and its answer), or the last N turns", Undo},
    {"/redo", "", "", "reverse the last /undo, if the conversation has not changed since", Redo},
    {"/regen", "/retry /regenerate", "[NAME=VALUE...]",
     "answer the last question again; NAME=VALUE changes a setting for this answer", Regenerate},
    {"/continue", "", "", "resume the last answer if it was interrupted or reached max-tokens", Continue},
    {"/edit", "", "[N]", "change the last question, or the N-th from the end, in a new branch", Edit},
    {"/next", "", "", "go to the next version of this answer or question", Next},
    {"/prev", "", "", "go to the previous version", Previous},
    {"/fork", "", "", "copy the current branch to a new conversation and continue there", Fork},
    {"/title", "", "[TEXT]", "set the title of this conversation; without TEXT, show it", Title},
    {"/search", "", "TEXT", "search all stored conversations", Search},
    {"/export", "", "FILE", "write the current branch to a new .md or .html file, or all branches to a new .json file",
     Export},
    {"/system", "", "[TEXT]", "set the system message and begin a new conversation; without TEXT, show it", System},
    {"/set", "", "[NAME [VALUE]]",
     "change a sampling setting; without VALUE, show one or all settings with their sources", Set},
    {"/info", "/show", "", "show the model, its chat template, the context and where the conversation is stored", Info},
    {"/stats", "", "", "show statistics of the last answer and of the engine", Stats},
    {"/exit", "/quit /bye", "", "quit", Quit},
}};

std::span<const SlashCommand> SlashCommands() { return kSlashCommands; }

}  // namespace

std::vector<std::string> SlashCommandNames() {
  std::vector<std::string> names;
  for (const SlashCommand& command : kSlashCommands) {
    names.emplace_back(command.name);
    for (std::string& alias : Words(std::string(command.aliases))) names.push_back(std::move(alias));
  }
  return names;
}

SlashResult RunSlashCommand(const std::string& line, ChatSession& session) {
  const size_t space = line.find_first_of(" \t\n");
  const std::string name = line.substr(0, space);
  std::string arguments = space == std::string::npos ? "" : line.substr(space + 1);
  arguments.erase(0, arguments.find_first_not_of(" \t"));
  arguments.erase(arguments.find_last_not_of(" \t\n") + 1);
  for (const SlashCommand& command : kSlashCommands) {
    const std::vector<std::string> aliases = Words(std::string(command.aliases));
    if (command.name != name && std::find(aliases.begin(), aliases.end(), name) == aliases.end()) continue;
    try {
      return command.run(arguments, session);
    } catch (const ConfigError& error) {
      PrintError(error.what());
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

bool ResumeChat(const std::string& text, ChatSession& session) {
  ChatStore& store = *session.store();
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool is_number = !text.empty() && error == std::errc() && end == text.data() + text.size();
  if (!is_number) {
    const std::vector<ChatSummary> chats = text.empty() ? store.List(1) : store.FindByTitle(text, 20);
    if (chats.size() > 1) {
      PrintError("several conversations match; give a number:");
      for (const ChatSummary& chat : chats) PrintNote(SummaryLine(chat));
      return false;
    }
    if (chats.empty()) {
      PrintError(text.empty() ? "there is no stored conversation" : "no stored conversation matches");
      return false;
    }
    id = chats[0].id;
  }
  switch (session.Open(id)) {
    case ChatTree::OpenResult::kMissing:
      PrintError("there is no conversation " + std::to_string(id));
      return false;
    case ChatTree::OpenResult::kLocked:
      PrintError("conversation " + std::to_string(id) + " is open in another chat");
      return false;
    case ChatTree::OpenResult::kOpened:
      break;
  }
  PrintConversation(session);
  return true;
}

}  // namespace vllm::app
