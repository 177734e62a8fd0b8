#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "app/batch/input/record_reader.h"
#include "app/chat/chat_session.h"
#include "app/chat/line_editor.h"
#include "app/chat/slash_commands.h"
#include "app/cli/xdg.h"
#include "app/commands/commands.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "engine/config/errors.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

// Handles one line of input. Returns false if the line ends the chat.
bool TakeLine(const std::string& line, ChatSession& session, bool prints_stats) {
  if (line.find_first_not_of(" \t\n") == std::string::npos) return true;
  if (line.front() == '/') return RunSlashCommand(line, session);
  session.SendUserMessage(tokenizer::ReplaceInvalidUtf8(line));
  if (prints_stats) PrintNote(RequestStatsText(session.last_stats()));
  return true;
}

std::string HistoryPath() {
  const std::string home = StateHome();
  if (home.empty() || !MakePrivateDirectory(home)) return "";
  return home + "/history";
}

// Prints at most three lines.
void PrintFirstScreen(const LoadedModel& model) {
  if (model.location.origin == "shipped") {
    PrintStatus("This is the guide, a tiny help model trained for vllmcli. It answers questions about this program.");
    PrintStatus("For a real model: vllmcli chat -m FILE.gguf, or -m with a Hugging Face model directory.");
  } else {
    PrintStatus(model.location.short_name() + ", context " + std::to_string(model.engine->max_model_len()) + " tokens");
  }
  PrintStatus("/help lists the commands; Ctrl-D or /exit quits.");
}

void ChatOnTerminal(ChatSession& session, bool prints_stats) {
  CatchSuspend();
  EnterChatModes();
  LineEditor editor(HistoryPath(), SlashCommandNames(), SettableNames());
  PrintFirstScreen(session.model());
  while (const std::optional<std::string> line = editor.ReadLine(">>> ")) {
    if (!TakeLine(*line, session, prints_stats)) return;
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
    } else if (!TakeLine(std::string(record), session, prints_stats)) {
      return;
    }
  }
}

}  // namespace

int ChatCommand(const Settings& settings) {
  if (!settings.arguments.empty()) throw ConfigError("chat: unexpected argument; use vllmcli run to answer one prompt");
  LoadedModel model = LoadModel(settings);
  if (model.renderer == nullptr) {
    throw ModelError("model " + model.location.name +
                     ": has no chat template; use vllmcli complete or pass --chat-template FILE");
  }
  ChatSession session(std::move(model), settings);
  const bool prints_stats = settings.Switch("stats");
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
    ChatOnTerminal(session, prints_stats);
  } else {
    ChatFromStream(session, prints_stats);
  }
  return 0;
}

}  // namespace vllm::app
