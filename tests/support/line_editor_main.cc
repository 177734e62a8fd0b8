// A program that only reads messages with LineEditor, for tests on a pseudo-terminal.
//
//   line_editor_program RESULTS [HISTORY [PIPE]]
// Each message is appended to the file RESULTS as a JSON string in a line. The signal that ended the program and the
// unsent draft follow as a JSON array. HISTORY is the history file, "" for none. Each text that arrives in the named
// pipe PIPE is numbered, appended to the file PIPE.log and printed above the draft.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/editor/line_editor.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"

namespace vllm::app {
namespace {

Completions Complete(std::string_view text) {
  const std::vector<CompletionChoice> commands = {
      {"/help", "list the commands"}, {"/hello", "say hello"}, {"/set", "change a setting"}};
  const std::vector<CompletionChoice> files = {{"@a file.txt", ""}, {"@a dir/", "", false}, {"@b.txt", ""}};
  Completions result;
  const size_t at = text.rfind('@');
  result.begin = text.starts_with('/') ? 0 : at;
  if (result.begin == std::string_view::npos) return {};
  const std::string_view typed = text.substr(result.begin);
  for (const CompletionChoice& choice : text.starts_with('/') ? commands : files) {
    if (choice.text.starts_with(typed)) result.choices.push_back(choice);
  }
  return result;
}

int Main(int argc, char** argv) {
  const std::string results = argv[1];
  const std::string history = argc > 2 ? argv[2] : "";
  const auto write_result = [&](const nlohmann::json& result) {
    std::ofstream(results, std::ios::app)
        << result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  };
  InstallSignals();
  SaveTerminal();
  EnterMainLoop();
  CatchSuspend();
  EnterChatModes();
  int status = 0;
  {
    LineEditor editor(history, Complete);
    if (argc > 3) {
      const int fd = open(argv[3], O_RDWR | O_NONBLOCK);
      const std::string log = std::string(argv[3]) + ".log";
      editor.AddWatch(fd, [&editor, fd, log, number = 0]() mutable {
        std::string buffer(4096, '\0');
        const ssize_t size = read(fd, buffer.data(), buffer.size());
        if (size <= 0) return;
        buffer.resize(static_cast<size_t>(size));
        const std::string text = std::to_string(++number) + ": " + buffer.substr(0, buffer.find_last_not_of('\n') + 1);
        std::ofstream(log, std::ios::app) << text << std::endl;
        editor.PrintAbove([text] { PrintNoteLines(text); });
      });
    }
    try {
      std::string draft;
      while (const std::optional<std::string> message = editor.ReadLine(">>> ", draft)) {
        write_result(*message);
        draft = *message == "/edit" ? "earlier text" : "";
      }
    } catch (const Interrupted& interrupted) {
      status = 128 + interrupted.signal_number();
      write_result({interrupted.signal_number(), editor.unfinished_line()});
    }
  }
  RestoreTerminal();
  return status;
}

}  // namespace
}  // namespace vllm::app

int main(int argc, char** argv) { return argc < 2 ? 2 : vllm::app::Main(argc, argv); }
