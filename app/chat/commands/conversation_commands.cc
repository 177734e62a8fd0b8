#include "app/chat/commands/conversation_commands.h"

#include <unistd.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "app/chat/answer_calls.h"
#include "app/chats/chat_export.h"
#include "app/cli/xdg.h"
#include "app/editor/path_completion.h"
#include "app/markdown/answer_display.h"
#include "app/output/list_text.h"
#include "app/pickers/chat_pickers.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "app/tools/tool_box.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

void PrintAnswer(const std::string& text, const ChatDisplay& display) {
  if (!display.markdown || !CanMoveCursor(STDOUT_FILENO)) {
    PrintNoteLines(text);
  } else {
    MakeAnswerDisplay(StandardOutput(), true, display.wrap_columns)->Feed(text, true);
  }
}

void PrintMessage(const StoredMessage& message, const ChatDisplay& display) {
  switch (message.role) {
    case ChatRole::kSystem:
      PrintNoteLines("[system] " + message.text);
      break;
    case ChatRole::kUser:
      PrintNoteLines(">>> " + message.text);
      break;
    case ChatRole::kAssistant:
      if (!message.thinking.empty()) {
        PrintNote("[" + ThoughtSummary(std::chrono::milliseconds(message.thinking_ms), message.num_thinking_ids) + "]");
      }
      if (!message.text.empty() || message.tool_calls.empty()) PrintAnswer(message.text, display);
      for (const ToolCall& call : CallsIn(message.tool_calls))
        PrintNote("[" + CallText(call.name, call.arguments) + "]");
      if (message.finish_reason.empty() || message.finish_reason == "abort") PrintNote("[this answer was interrupted]");
      break;
    case ChatRole::kTool:
      PrintNoteLines("[result of " + message.tool_name + "] " + message.text);
      break;
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

SlashResult Move(ChatSession& session, int direction) {
  if (session.MoveToSibling(direction)) {
    PrintConversation(session);
  } else {
    PrintNote(direction > 0 ? "[there is no later version]" : "[there is no earlier version]");
  }
  return {};
}

}  // namespace

void PrintConversation(const ChatSession& session) {
  constexpr size_t kMaxMessages = 10;
  const std::vector<const StoredMessage*> path = session.tree().PathTo(session.tree().current_id());
  const size_t first = path.size() > kMaxMessages ? path.size() - kMaxMessages : 0;
  if (first > 0) PrintNote("[" + std::to_string(first) + " earlier messages]");
  for (size_t i = first; i < path.size(); ++i) PrintMessage(*path[i], session.display());
  if (const int64_t num_dropped = session.num_dropped_turns(); num_dropped > 0) {
    PrintNote(num_dropped == 1 ? "[the oldest turn is outside the context]"
                               : "[the oldest " + std::to_string(num_dropped) + " turns are outside the context]");
  }
  if (!path.empty() && path.back()->role == ChatRole::kUser && session.tree().ChildrenOf(path.back()->id).empty()) {
    PrintNote("[this question has no answer; /regen answers it]");
  }
  if (const std::optional<size_t> num_calls = session.NumOpenCalls()) {
    PrintNote(*num_calls == 0 ? "[the results of the tools have no answer; /continue answers them]"
              : *num_calls == 1
                  ? "[1 call of tools has no result; /continue runs it]"
                  : "[" + std::to_string(*num_calls) + " calls of tools have no result; /continue runs them]");
  }
}

SlashResult NewCommand(const std::string&, ChatSession& session) {
  session.Begin();
  PrintNote(session.store() != nullptr ? "[new conversation; /resume lists the stored ones]" : "[new conversation]");
  return {};
}

SlashResult ResumeCommand(const std::string& arguments, ChatSession& session) {
  if (!HasStore(session)) return {};
  if (arguments.empty() && CanPick()) {
    const LoadedModel& model = session.model();
    const std::optional<int64_t> chat =
        PickChat(*session.store(), session.tree().chat_id(), *model.engine, model.background);
    if (!chat || !ResumeChat(std::to_string(*chat), session) || session.tree().draft().empty()) return {};
    return {.quits = false, .draft = session.tree().draft()};
  }
  if (arguments.empty()) {
    const std::vector<ChatSummary> chats = session.store()->List(20);
    for (const ChatSummary& chat : chats) PrintNote(SummaryLine(chat));
    PrintNote(chats.empty() ? "[no stored conversations]" : "/resume NUMBER or /resume TEXT continues one.");
    return {};
  }
  if (!ResumeChat(arguments, session) || session.tree().draft().empty()) return {};
  return {.quits = false, .draft = session.tree().draft()};
}

SlashResult UndoCommand(const std::string& arguments, ChatSession& session) {
  const std::optional<int64_t> count = PositiveNumber(arguments, 1);
  if (!count) {
    PrintError("/undo: not a positive number");
    return {};
  }
  const int64_t done = session.Undo(*count);
  PrintNote(done == 0   ? "[there is nothing to undo]"
            : done == 1 ? "[one turn undone; /redo restores it]"
                        : "[" + std::to_string(done) + " turns undone; /redo restores them]");
  return {};
}

SlashResult RedoCommand(const std::string&, ChatSession& session) {
  if (session.Redo()) {
    PrintConversation(session);
  } else {
    PrintNote("[there is nothing to redo]");
  }
  return {};
}

std::optional<std::vector<SettingChange>> ParseChanges(const std::string& command,
                                                       const std::vector<std::string>& words) {
  std::vector<SettingChange> changes;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t dashes = words[i].find_first_not_of('-');
    const size_t equals = words[i].find('=');
    if (dashes == std::string::npos || (equals == std::string::npos && i + 1 == words.size())) {
      PrintError(command + " " + words[i] + ": no value; for example, " + command + " temperature=0.2 or " + command +
                 " --seed 5");
      return std::nullopt;
    }
    if (equals != std::string::npos) {
      changes.emplace_back(words[i].substr(dashes, equals - dashes), words[i].substr(equals + 1));
    } else {
      changes.emplace_back(words[i].substr(dashes), words[i + 1]);
      ++i;
    }
  }
  return changes;
}

SlashResult RegenerateCommand(const std::string& arguments, ChatSession& session) {
  const auto changes = ParseChanges("/regen", SplitWords(arguments));
  if (changes) session.Regenerate(*changes);
  return {};
}

SlashResult ContinueCommand(const std::string&, ChatSession& session) {
  session.Continue();
  return {};
}

SlashResult EditCommand(const std::string& arguments, ChatSession& session) {
  const std::optional<int64_t> n = PositiveNumber(arguments, 1);
  std::optional<std::string> text = n ? session.Edit(*n) : std::nullopt;
  if (!text) {
    PrintError(n ? "/edit: there is no such question" : "/edit: not a positive number");
    return {};
  }
  PrintNote("[the next message replaces this question in a new branch]");
  return {.quits = false, .draft = DraftOf(*std::move(text))};
}

SlashResult NextCommand(const std::string&, ChatSession& session) { return Move(session, 1); }
SlashResult PreviousCommand(const std::string&, ChatSession& session) { return Move(session, -1); }

SlashResult ForkCommand(const std::string& arguments, ChatSession& session) {
  if (session.tree().empty()) {
    PrintNote("[the conversation is empty]");
    return {};
  }
  session.Fork(arguments);
  const int64_t id = session.tree().chat_id();
  PrintNote(id == 0 ? "[copied]" : "[copied to conversation " + std::to_string(id) + "]");
  return {};
}

SlashResult TitleCommand(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    PrintNote(session.tree().title().empty() ? "[no title]" : session.tree().title());
  } else {
    session.SetTitle(arguments);
  }
  return {};
}

SlashResult SearchCommand(const std::string& arguments, ChatSession& session) {
  if (!HasStore(session)) return {};
  if (arguments.empty()) {
    PrintError("/search: expects a text; for example, /search whale");
    return {};
  }
  const std::vector<SearchHit> hits = session.store()->Search(arguments, 20);
  for (const SearchHit& hit : hits) {
    PrintNote("  " + std::to_string(hit.chat) + "  " + FirstLine(hit.title, 40) + ": " + OneLine(hit.snippet));
  }
  if (hits.empty()) PrintNote("[nothing found]");
  return {};
}

SlashResult ExportCommand(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    PrintError("/export: name a new .md, .html or .json file");
    return {};
  }
  const std::string file = TypedPath(arguments);
  StoredChat chat;
  // The database may lack the last messages.
  const int64_t id = session.tree().is_behind() ? 0 : session.tree().chat_id();
  if (std::optional<StoredChat> stored = id == 0 ? std::nullopt : session.store()->Load(id)) {
    chat = *std::move(stored);
  } else {
    chat.title = session.tree().title();
    chat.current_message = session.tree().current_id();
    chat.messages = session.tree().AllMessages();
  }
  WriteNewFile(file, ExportText(chat, file));
  PrintNote("[written to " + file + "]");
  return {};
}

std::string DraftOf(std::string message) {
  if (message.starts_with('/')) message.insert(0, "/");
  return message;
}

bool OpenChat(const std::string& text, ChatSession& session) {
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
  return true;
}

bool ResumeChat(const std::string& text, ChatSession& session) {
  if (!OpenChat(text, session)) return false;
  PrintConversation(session);
  return true;
}

}  // namespace vllm::app
