#include "app/commands/chat_loop.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "app/batch/input/record_reader.h"
#include "app/chat/chat_session.h"
#include "app/chat/commands/chat_input.h"
#include "app/chat/commands/conversation_commands.h"
#include "app/chat/commands/preset_commands.h"
#include "app/chat/commands/slash_commands.h"
#include "app/chat/tool_use.h"
#include "app/cli/xdg.h"
#include "app/commands/commands.h"
#include "app/commands/conversation_store.h"
#include "app/editor/line_editor.h"
#include "app/pickers/chat_pickers.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "engine/config/errors.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

// Returns true if the line is a slash command. A file name such as /etc/fstab, and a line that begins with two slashes,
// are messages.
bool IsCommand(const std::string& line) {
  if (line.front() != '/') return false;
  const size_t second = line.find_first_of("/ \t\n", 1);
  return second == std::string::npos || line[second] != '/';
}

// Handles one line of input.
SlashResult TakeLine(const std::string& line, ChatSession& session, bool prints_stats) {
  if (line.find_first_not_of(" \t\n") == std::string::npos) return {};
  if (IsCommand(line)) return RunSlashCommand(line, session);
  const std::optional<std::string> message = MessageWithFiles(line.starts_with("//") ? line.substr(1) : line, session);
  if (!message) return {.quits = false, .draft = line};
  session.SendUserMessage(tokenizer::ReplaceInvalidUtf8(*message));
  if (prints_stats) PrintNote(RequestStatsText(session.last_stats()));
  return {};
}

// Continues the conversation that the flags name, if any. Returns its draft. Throws ConfigError if there is none. For
// --resume without a value, lets the user choose one, or lists them and returns the beginning of the command that
// chooses one.
std::string ContinueChat(const Settings& settings, ChatSession& session) {
  const bool continues = settings.Switch("continue");
  if (!continues && !settings.Has("resume")) return "";
  CheckCanContinue(settings, session.store());
  if (!continues && settings.Text("resume")->empty()) {
    const SlashResult result = RunSlashCommand("/resume", session);
    return CanPick() ? result.draft.value_or("") : "/resume ";
  }
  if (!ResumeChat(continues ? "" : *settings.Text("resume"), session)) {
    throw ConfigError("chat: no conversation was continued",
                      "vllmcli chats list shows the stored conversations; vllmcli chat begins a new one");
  }
  NoteUnusedSystem(settings, session);
  return session.tree().draft();
}

// Returns "" if typed lines are not to be kept.
std::string HistoryPath(const Settings& settings) {
  if (!StoresConversations(settings)) return "";
  const std::string home = StateHome();
  if (home.empty() || !MakePrivateDirectory(home)) return "";
  return home + "/history";
}

// Prints at most three lines; PrintPresetNotes adds one. They fit in 80 columns, except for a model's long name.
void PrintFirstScreen(const LoadedModel& model) {
  if (model.location.origin == "shipped") {
    PrintStatus("This is the guide, a tiny help model trained for vllmcli. It knows only vllmcli.");
    PrintStatus("For a real model: vllmcli chat -m FILE.gguf");
  } else {
    PrintStatus(model.location.short_name() + ", context " + std::to_string(model.engine->max_model_len()) + " tokens");
  }
  PrintStatus("/help lists the commands; Alt-Enter begins a new line; Ctrl-D or /exit quits.");
}

void ChatOnTerminal(ChatSession& session, bool prints_stats, std::string draft) {
  CatchSuspend();
  EnterChatModes();
  const TakesInterrupts takes_interrupts;
  LineEditor editor(HistoryPath(session.settings()), ChatCompleter(session));
  // The batch behind the chat, or null. The chat says once that it is done.
  const BackgroundWork* background = session.model().background;
  bool was_done = background == nullptr || background->is_done();
  const auto note_done = [&] {
    if (was_done || !background->is_done()) return;
    was_done = true;
    editor.PrintAbove([&] { PrintNote("[the batch is done: " + background->progress_text() + "]"); });
  };
  if (background != nullptr) {
    LLMEngine& engine = *session.model().engine;
    background->add_requests();
    editor.AddWatch(engine.OutputFd(), [&engine, background, &note_done] {
      ServeBackground(engine, *background);
      note_done();
    });
  }
  const auto cancel_edit = [&session] {
    if (session.CancelEdit()) PrintNote("[the question is not replaced]");
  };
  try {
    while (const std::optional<std::string> line = editor.ReadLine(">>> ", draft, cancel_edit)) {
      SlashResult result = TakeLine(*line, session, prints_stats);
      if (result.quits) {
        session.SetDraft("");
        return;
      }
      draft = std::move(result.draft).value_or("");
      note_done();
    }
    session.SetDraft("");
  } catch (const Interrupted& interrupted) {
    if (interrupted.signal_number() != SIGINT) session.SetDraft(editor.unfinished_line());
    throw;
  }
  PrintNote("");
}

// Chats without a line editor, when standard input or output is not a terminal. Each line of standard input is one
// message or command.
void ChatFromStream(ChatSession& session, bool prints_stats) {
  RecordReader reader(STDIN_FILENO, "standard input", '\0');
  std::string_view record;
  while (true) {
    const RecordReader::Status status = reader.Next(record);
    if (status == RecordReader::Status::kEnd) return;
    if (status == RecordReader::Status::kNeedInput) {
      // Wait for input and for signals. With a plain read(), a signal that arrives just before the call would be
      // noticed only after the next line.
      std::array<pollfd, 2> fds = {{{STDIN_FILENO, POLLIN, 0}, {SignalFd(), POLLIN, 0}}};
      poll(fds.data(), fds.size(), -1);
      ThrowIfInterrupted();
      if (fds[0].revents != 0) reader.Fill();
    } else if (status == RecordReader::Status::kTooLong) {
      PrintError("line " + std::to_string(reader.line()) + ": too long (limit 64 MiB)");
    } else {
      const SlashResult result = TakeLine(std::string(record), session, prints_stats);
      if (result.quits) return;
      // Without a line editor, nothing can be changed in place.
      if (result.draft) PrintNoteLines(*result.draft);
    }
  }
}

}  // namespace

void RunChat(LoadedModel& model, const Settings& settings, const std::optional<PresetPrompt>& preset) {
  if (model.renderer == nullptr) {
    throw ModelError("model " + model.location.name + ": has no chat template",
                     "vllmcli complete continues text without one; --chat-template FILE sets one");
  }
  const std::unique_ptr<ChatStore> store = OpenStore(settings);
  std::unique_ptr<ToolUse> tools = HasRunnableTools(settings) ? std::make_unique<ToolUse>(settings) : nullptr;
  ChatSession session(model, settings, store.get(), preset);
  const bool prints_stats = settings.Switch("stats");
  const bool is_on_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  if (is_on_terminal) PrintFirstScreen(session.model());
  if (preset) PrintPresetNotes(session);
  session.UseTools(std::move(tools));
  // In a batch, the rows may have other tools.
  if (settings.command == Command::kChat) session.CheckToolChoice();
  std::string draft = ContinueChat(settings, session);
  const bool has_system = settings.SourceOf("system") == SettingSource::kPreset;
  if (has_system && !session.tree().empty() && session.system() != settings.Text("system")) {
    PrintNote("[the stored conversation keeps its own system message, not that of the preset]");
  }
  if (is_on_terminal) {
    ChatOnTerminal(session, prints_stats, std::move(draft));
  } else {
    ChatFromStream(session, prints_stats);
  }
}

}  // namespace vllm::app
