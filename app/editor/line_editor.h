// LineEditor: reads messages of one or several lines from a terminal. Readline edits the text (its key bindings,
// inputrc and vi mode, undo, kill ring and search of the history), through its callback interface. LineEditor reads the
// terminal, and draws the draft itself, because readline's display corrupts a draft that is taller than the screen.
// docs/TERMINAL.md describes the keys. Readline's state is global, so only one LineEditor may exist at a time. Owned by
// the chat command; main thread.
//
// On a terminal that cannot move its cursor, such as TERM=dumb, readline draws the line, because its display needs only
// carriage returns and backspaces there.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/editor/completer.h"
#include "app/editor/draft_view.h"
#include "app/editor/history_file.h"
#include "app/editor/terminal_input.h"

namespace vllm::app {

class LineEditor {
 public:
  // An empty `history_path` means no history file. Tab offers the choices of `completer`; null: none.
  LineEditor(std::string history_path, Completer completer);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Shows `draft` as the beginning of the text and waits until one is sent. Esc Esc on an empty draft sends "/edit".
  // Returns nullopt at the end of input (Ctrl-D on an empty draft). Ctrl-C moves the draft to the history. On an empty
  // draft it prints how to quit, and again within a second throws Interrupted, as do SIGTERM, SIGHUP and the loss of
  // the terminal; throws what the callback of a watch throws. Restores the terminal's previous modes in all cases.
  // Calls `on_interrupt`, which may print whole lines, after each Ctrl-C that does not throw.
  std::optional<std::string> ReadLine(const std::string& prompt, const std::string& draft = "",
                                      std::function<void()> on_interrupt = nullptr);
  // Returns the draft at the time when the last ReadLine threw.
  const std::string& unfinished_line() const { return unfinished_line_; }

  // While ReadLine waits, also for an external editor, calls `callback` whenever `fd` is readable or closed. The
  // callback must read or remove it. Borrows `fd`. A callback that prints calls PrintAbove.
  void AddWatch(int fd, std::function<void()> callback);
  void RemoveWatch(int fd);
  // Calls `print`, which writes whole lines to the terminal. If ReadLine is waiting, the lines appear above the draft.
  // While an external editor is open, `print` is called after its end.
  void PrintAbove(std::function<void()> print);

 private:
  enum class Event { kNone, kSent, kEnd };

  struct Watch {
    int fd;
    std::shared_ptr<std::function<void()>> callback;  // shared with the call that is running
  };

  void Begin(const std::string& prompt);
  void End();
  // Waits for input, signals, watched descriptors and changes of the terminal's size, and handles them. Throws
  // Interrupted.
  Event Wait();
  void HandleKeys();
  // Handles ESC keys that no other key has followed. Two of them on an empty draft send /edit.
  void HandleEscapes();
  void HandlePaste();
  void HandleRequest();
  void HandleSignal(int signal_number);
  void HandleInterrupt();
  void HandleWindowChange();
  // Polls `fds` and the watched descriptors, calls the callbacks of those that are ready, and returns poll's result.
  int Poll(std::vector<pollfd>& fds, int timeout_ms);
  // Reads the input from the terminal. Returns false if the terminal is closed.
  bool ReadInput();
  void SetBracketedPaste(bool on);
  // Calls `run` with the terminal's previous modes.
  void LendTerminal(const std::function<void()>& run);
  void OpenEditor();
  void Suspend();
  void Draw();
  // Shows all rows of the draft that was sent and goes to the row below.
  void DrawSent(const std::string& draft);
  // Goes to the row below the draft.
  void LeaveDraft();
  void ListChoices(const std::vector<CompletionChoice>& choices);
  // Adds a message or a cleared draft to the history. Returns false if it does not belong there.
  bool Remember(const std::string& line, bool was_sent);

  // Readline's hooks, which have no user pointer.
  static char** OnComplete(const char* text, int start, int end);
  static void OnDisplayChoices(char** matches, int num_matches, int max_length);
  static int OnInputAvailable();
  static int OnReadKey(std::FILE* stream);

  Completer completer_;
  std::vector<CompletionChoice> choices_;  // of the completion that readline is doing
  std::unique_ptr<HistoryFile> history_;   // null: no history is kept
  std::vector<Watch> watches_;
  TerminalInput input_;
  std::chrono::steady_clock::time_point last_input_;
  DraftView view_;
  std::string prompt_;
  std::string unfinished_line_;
  bool draws_ = true;            // false: readline draws the line
  bool bracketed_paste_ = true;  // as inputrc says
  bool marks_pastes_ = false;    // bracketed paste is on
  bool is_reading_ = false;
  bool is_closed_ = false;       // the terminal is
  bool is_editor_open_ = false;  // an external editor uses the terminal
  std::vector<std::function<void()>> delayed_prints_;
  int num_rows_ = 24;
  int num_columns_ = 80;
  size_t first_row_ = 0;  // of a draft that is taller than the screen
  bool told_about_history_ = false;
  int num_escapes_ = 0;  // consecutive ESC keys
  std::function<void()> on_interrupt_;
  std::optional<std::chrono::steady_clock::time_point> last_interrupt_;  // the last Ctrl-C on an empty draft
};

}  // namespace vllm::app
