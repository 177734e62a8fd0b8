#include "app/chat/line_editor.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "app/terminal/type_ahead.h"
#include "engine/config/errors.h"

// After the standard headers, because these headers need FILE.
#include <readline/history.h>
#include <readline/readline.h>

namespace vllm::app {
namespace {

// Global, because readline's callbacks have no user pointer.
struct EditorState {
  bool has_line = false;
  bool at_end = false;
  std::string line;
  std::vector<std::string> completions;
  std::vector<std::string> arguments;
};
EditorState g_editor;

void OnLine(char* line) {
  rl_callback_handler_remove();
  g_editor.has_line = line != nullptr;
  g_editor.at_end = line == nullptr;
  if (line != nullptr) g_editor.line = line;
  std::free(line);
}

char* NextMatch(const char* text, int state) {
  static size_t next = 0;
  if (state == 0) next = 0;
  const std::vector<std::string>& words = rl_line_buffer[0] == '/' && std::strchr(rl_line_buffer, ' ') == nullptr
                                              ? g_editor.completions
                                              : g_editor.arguments;
  while (next < words.size()) {
    const std::string& word = words[next++];
    if (word.compare(0, std::strlen(text), text) == 0) return strdup(word.c_str());
  }
  return nullptr;
}

char** Complete(const char* text, int start, int) {
  rl_attempted_completion_over = 1;  // never complete file names
  if (rl_line_buffer[0] != '/') return nullptr;
  const bool is_set = std::strncmp(rl_line_buffer, "/set ", 5) == 0 && start == 5;
  return start == 0 || is_set ? rl_completion_matches(text, NextMatch) : nullptr;
}

void OnWindowChange(int) {}  // interrupts poll()

}  // namespace

LineEditor::LineEditor(std::string history_path, std::vector<std::string> completions,
                       std::vector<std::string> arguments) {
  g_editor.completions = std::move(completions);
  g_editor.arguments = std::move(arguments);
  // Readline uses LC_CTYPE to count columns. Other categories are not set, so numbers keep the C locale's format.
  const char* locale = std::setlocale(LC_CTYPE, "");
  if (locale == nullptr || std::strcmp(locale, "C") == 0 || std::strcmp(locale, "POSIX") == 0) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  rl_readline_name = "vllmcli";
  rl_catch_signals = 0;
  rl_catch_sigwinch = 0;
  rl_attempted_completion_function = Complete;
  rl_basic_word_break_characters = " ";
  const bool plain = !CanMoveCursor(STDOUT_FILENO);
  rl_variable_bind("enable-bracketed-paste", plain ? "off" : "on");
  rl_variable_bind("bell-style", "none");
  struct sigaction action {};
  action.sa_handler = OnWindowChange;
  sigaction(SIGWINCH, &action, nullptr);
  using_history();
  if (history_path.empty()) return;
  try {
    history_ = std::make_unique<HistoryFile>(std::move(history_path));
    for (const std::string& entry : history_->entries()) add_history(entry.c_str());
  } catch (const ResourceError& error) {
    PrintWarning(error.what());
  }
}

LineEditor::~LineEditor() {
  rl_callback_handler_remove();
  NoteBracketedPaste(false);
}

std::optional<std::string> LineEditor::ReadLine(const std::string& prompt, const std::string& draft) {
  g_editor.has_line = false;
  g_editor.at_end = false;
  g_editor.line.clear();
  NoteBracketedPaste(CanMoveCursor(STDOUT_FILENO));
  rl_callback_handler_install(prompt.c_str(), OnLine);
  if (!draft.empty()) {
    rl_insert_text(draft.c_str());
    rl_redisplay();
  }
  auto last_interrupt = std::chrono::steady_clock::time_point::min();
  int columns = TerminalColumns(STDOUT_FILENO);
  const std::string typed = TakeTypedKeys();
  size_t num_taken = 0;
  while (!g_editor.has_line && !g_editor.at_end) {
    if (num_taken < typed.size()) {
      rl_stuff_char(static_cast<unsigned char>(typed[num_taken++]));
      rl_callback_read_char();
      continue;
    }
    std::array<pollfd, 2> fds = {{{STDIN_FILENO, POLLIN, 0}, {SignalFd(), POLLIN, 0}}};
    const int num_ready = poll(fds.data(), fds.size(), -1);
    if (const int now = TerminalColumns(STDOUT_FILENO); now != columns) {
      columns = now;
      rl_resize_terminal();
    }
    if (num_ready < 0) continue;
    if (fds[1].revents != 0) {
      const int signal_number = TakeSignal();
      if (signal_number == SIGTSTP) {
        Suspend();
      } else if (signal_number == SIGINT) {
        const auto now = std::chrono::steady_clock::now();
        const bool again = last_interrupt != std::chrono::steady_clock::time_point::min() &&
                           now - last_interrupt < std::chrono::seconds(1);
        if (again) {
          rl_callback_handler_remove();
          throw Interrupted(SIGINT);
        }
        last_interrupt = now;
        const bool was_empty = rl_end == 0;
        rl_callback_sigcleanup();
        rl_free_line_state();
        rl_replace_line("", 0);
        rl_point = 0;
        rl_crlf();
        if (was_empty) {
          std::fflush(rl_outstream);
          PrintNote("Ctrl-D or /exit quits.");
        }
        rl_on_new_line();
        rl_redisplay();
      } else if (signal_number != 0) {
        rl_callback_handler_remove();
        throw Interrupted(signal_number);
      }
      continue;
    }
    if (fds[0].revents != 0) rl_callback_read_char();
  }
  KeepTypedKeys(std::string_view(typed).substr(num_taken));
  NoteBracketedPaste(false);
  if (g_editor.at_end) return std::nullopt;
  Remember(g_editor.line);
  return g_editor.line;
}

void LineEditor::Suspend() {
  rl_deprep_terminal();
  RestoreTerminal();
  SuspendProcess();
  EnterChatModes();
  rl_prep_terminal(1);
  NoteBracketedPaste(CanMoveCursor(STDOUT_FILENO));
  rl_forced_update_display();
}

void LineEditor::Remember(const std::string& line) {
  if (line.find_first_not_of(" \t\n") == std::string::npos) return;
  const HIST_ENTRY* last = history_length > 0 ? history_get(history_base + history_length - 1) : nullptr;
  if (last != nullptr && line == last->line) return;
  add_history(line.c_str());
  if (history_ == nullptr) return;
  try {
    history_->Append(line);
  } catch (const ResourceError& error) {
    PrintWarning(error.what());
    history_.reset();
  }
}

}  // namespace vllm::app
