// LineEditor: lines typed at a terminal, through readline's callback interface: editing, history, completion of slash
// commands, a pasted text of several lines as one line. Readline's state is global: one LineEditor at a time. Main
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/history_file.h"

namespace vllm {

class LineEditor {
 public:
  // `history_path` empty: nothing is kept. `completions`: the words Tab completes at the start of a line that begins
  // with a slash; `arguments`: those it completes behind one.
  LineEditor(std::string history_path, std::vector<std::string> completions, std::vector<std::string> arguments);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Waits for a line; none at the end of input (Ctrl-D on an empty line). Ctrl-C clears the draft, says on an empty
  // line how to leave and, twice within a second, throws Interrupted; so do SIGTERM and SIGHUP. The terminal is in its
  // usual modes when this returns.
  std::optional<std::string> ReadLine(const std::string& prompt);

 private:
  void Suspend();
  void Remember(const std::string& line);

  std::unique_ptr<HistoryFile> history_;  // null: nothing is kept
};

}  // namespace vllm
