// LineEditor: reads lines from a terminal through readline's callback interface, with editing, history and completion
// of slash commands. A paste of several lines is returned as one string. Readline's state is global, so only one
// LineEditor may exist at a time. Owned by the chat command; main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/history_file.h"

namespace vllm::app {

class LineEditor {
 public:
  // An empty `history_path` means no history file. On a line that begins with a slash, Tab completes `completions` as
  // the first word, and `arguments` after "/set ".
  LineEditor(std::string history_path, std::vector<std::string> completions, std::vector<std::string> arguments);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Shows `draft` as the beginning of the line and waits for a line. Returns nullopt at the end of input (Ctrl-D on an
  // empty line). Ctrl-C clears the line, and prints how to quit if the line was empty. A second Ctrl-C within a second
  // throws Interrupted, as do SIGTERM and SIGHUP. Restores the terminal's previous modes before it returns.
  std::optional<std::string> ReadLine(const std::string& prompt, const std::string& draft = "");

 private:
  void Suspend();
  void Remember(const std::string& line);

  std::unique_ptr<HistoryFile> history_;  // null: no history is kept
};

}  // namespace vllm::app
