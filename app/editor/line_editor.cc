#include "app/editor/line_editor.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "app/editor/editor_commands.h"
#include "app/editor/external_editor.h"
#include "app/editor/multi_line.h"
#include "app/editor/readline_matches.h"
#include "app/terminal/locale.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "app/terminal/type_ahead.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/regular_file.h"

// After the standard headers, because these headers need FILE.
#include <readline/history.h>
#include <readline/readline.h>

namespace vllm::app {
namespace {

constexpr size_t kMaxDraftBytes = TerminalInput::kMaxPasteBytes;
// A sent draft with more rows is shown without its middle.
constexpr size_t kMaxSentRows = 1000;
// Programs that send keys, and slow lines, need less to send the rest of a sequence.
constexpr auto kSequenceTime = std::chrono::milliseconds(25);
constexpr auto kMaxDrawDelay = std::chrono::milliseconds(100);

// Global, because readline's callbacks have no user pointer.
struct ReadlineState {
  LineEditor* editor = nullptr;
  bool has_line = false;
  bool at_end = false;
  bool is_typed = true;  // false: a key has sent the line
  bool must_draw = false;
  std::string line;
};
ReadlineState g_readline;

void OnLine(char* line) {
  rl_callback_handler_remove();
  g_readline.has_line = line != nullptr;
  g_readline.at_end = line == nullptr;
  if (line != nullptr) g_readline.line = line;
  std::free(line);
}

// The chat keeps the terminal's echo off, from which readline would conclude that it must not show what is typed.
void PrepareTerminal(int meta) {
  rl_prep_terminal(meta);
  rl_tty_set_echoing(1);
}

void OnRedisplay() { g_readline.must_draw = true; }

void WriteToTerminal(std::string_view bytes) { tokenizer::WriteAll(STDOUT_FILENO, bytes); }

std::string CurrentLine() { return {rl_line_buffer, static_cast<size_t>(rl_end)}; }

}  // namespace

LineEditor::LineEditor(std::string history_path, Completer completer) : completer_(std::move(completer)) {
  g_readline.editor = this;
  SetCharacterLocale();
  rl_readline_name = "vllmcli";
  rl_catch_signals = 0;
  rl_catch_sigwinch = 0;
  rl_change_environment = 0;
  rl_attempted_completion_function = OnComplete;
  rl_completion_display_matches_hook = OnDisplayChoices;
  rl_sort_completion_matches = 0;
  rl_basic_word_break_characters = " \t\n";
  rl_completer_word_break_characters = " \t\n";
  rl_prep_term_function = PrepareTerminal;
  rl_input_available_hook = OnInputAvailable;
  rl_getc_function = OnReadKey;
  // Defaults, which inputrc can change.
  rl_variable_bind("enable-bracketed-paste", "on");
  rl_variable_bind("show-all-if-ambiguous", "on");
  // In vi's insert mode, readline waits again for a sequence after an ESC for which LineEditor has waited.
  rl_variable_bind("keyseq-timeout", "1");
  rl_initialize();  // reads inputrc
  draws_ = TerminalHas(STDOUT_FILENO, "el");
  // Set after the initialization, which takes the terminal for a dumb one if there is such a function.
  if (draws_) rl_redisplay_function = OnRedisplay;
  const char* paste = rl_variable_value("enable-bracketed-paste");
  bracketed_paste_ = draws_ && paste != nullptr && std::strcmp(paste, "on") == 0;
  // TerminalInput takes pastes. Readline would wait for the end of one and ignore signals meanwhile.
  rl_variable_bind("enable-bracketed-paste", "off");
  rl_variable_bind("enable-meta-key", "off");  // changes a mode of the terminal
  rl_variable_bind("bell-style", "none");
  WindowChangeFd();  // from now on no change of the size is missed
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
  End();
  rl_callback_handler_remove();
  g_readline.editor = nullptr;
}

void LineEditor::Begin(const std::string& prompt) {
  g_readline.has_line = false;
  g_readline.at_end = false;
  g_readline.is_typed = true;
  g_readline.line.clear();
  prompt_ = prompt;
  view_.Forget();
  first_row_ = 0;
  is_reading_ = true;
  input_.Feed(TakeTypedKeys());
  rl_callback_handler_install(prompt_.c_str(), OnLine);
  BindEditorKeys();
  SetBracketedPaste(true);
}

void LineEditor::End() {
  if (!is_reading_) return;
  is_reading_ = false;
  SetBracketedPaste(false);
}

void LineEditor::SetBracketedPaste(bool on) {
  if (!bracketed_paste_ || on == marks_pastes_) return;
  marks_pastes_ = on;
  NoteBracketedPaste(on);
  WriteToTerminal(on ? "\x1b[?2004h" : "\x1b[?2004l");
}

std::optional<std::string> LineEditor::ReadLine(const std::string& prompt, const std::string& draft,
                                                std::function<void()> on_interrupt) {
  on_interrupt_ = std::move(on_interrupt);
  unfinished_line_.clear();
  last_interrupt_.reset();
  Begin(prompt);
  HandleWindowChange();
  if (!draft.empty()) InsertText(DraftText(draft));
  if (!draws_) rl_redisplay();
  g_readline.must_draw = true;
  try {
    Event event = Event::kNone;
    while (event == Event::kNone) event = Wait();
    End();
    if (event == Event::kEnd) return std::nullopt;
  } catch (...) {
    unfinished_line_ = CurrentLine();
    is_editor_open_ = false;
    delayed_prints_.clear();
    LeaveDraft();
    rl_callback_handler_remove();
    End();
    throw;
  }
  if (draws_) DrawSent(g_readline.line);
  std::string message = MessageOfDraft(g_readline.line);
  if (g_readline.is_typed) Remember(message, /*was_sent=*/true);
  return message;
}

LineEditor::Event LineEditor::Wait() {
  auto first_wait = std::chrono::steady_clock::now();
  while (true) {
    if (input_.HasKey() && !g_readline.has_line) HandleKeys();
    if (g_readline.has_line) return Event::kSent;
    if (g_readline.at_end) return Event::kEnd;
    if (input_.HasPaste()) {
      HandlePaste();
      continue;
    }
    if (is_closed_) throw Interrupted(SIGHUP);  // the signal may come later or not at all
    std::vector<pollfd> fds = {{STDIN_FILENO, POLLIN, 0}, {SignalFd(), POLLIN, 0}, {WindowChangeFd(), POLLIN, 0}};
    const auto now = std::chrono::steady_clock::now();
    const bool must_draw = g_readline.must_draw;
    int timeout_ms = must_draw ? 0 : -1;
    // Watched descriptors may be ready all the time, so the end of a wait does not depend on them.
    if (!must_draw && input_.IsWaitingForMore()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(last_input_ + kSequenceTime - now);
      timeout_ms = std::max(0, static_cast<int>(left.count()));
      if (timeout_ms == 0) {
        HandleEscapes();
        continue;
      }
    }
    // Draw when there is no more input, or if input does not end.
    if (must_draw && now - first_wait > kMaxDrawDelay) Draw();
    const int num_ready = Poll(fds, timeout_ms);
    if (num_ready == 0) {
      if (must_draw) Draw();
      first_wait = std::chrono::steady_clock::now();
    }
    if (num_ready <= 0) continue;
    if (fds[1].revents != 0) HandleSignal(TakeSignal());
    if (fds[2].revents != 0) HandleWindowChange();
    if (fds[0].revents != 0 && !ReadInput()) is_closed_ = true;
  }
}

int LineEditor::Poll(std::vector<pollfd>& fds, int timeout_ms) {
  const size_t num_fds = fds.size();
  for (const Watch& watch : watches_) fds.push_back({watch.fd, POLLIN, 0});
  const int num_ready = poll(fds.data(), fds.size(), timeout_ms);
  for (size_t i = num_fds; num_ready > 0 && i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    // An earlier callback may have removed the watch.
    const int fd = fds[i].fd;
    const auto watch = std::find_if(watches_.begin(), watches_.end(), [fd](const Watch& w) { return w.fd == fd; });
    if (watch == watches_.end()) continue;
    const std::shared_ptr<std::function<void()>> callback = watch->callback;
    (*callback)();
  }
  return num_ready;
}

bool LineEditor::ReadInput() {
  std::array<char, 1 << 16> buffer;
  const ssize_t num_read = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (num_read < 0) return errno == EINTR || errno == EAGAIN;
  if (num_read == 0) return false;
  last_input_ = std::chrono::steady_clock::now();
  const size_t size = static_cast<size_t>(num_read);
  const size_t num_before = std::min(size, TakeNumBytesTypedBefore());
  std::replace(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(num_before), '\n', '\r');
  input_.Feed({buffer.data(), size});
  return true;
}

void LineEditor::HandleEscapes() {
  const int num_escapes = input_.Flush();
  if (num_escapes == 0) return;
  if (IsViCommandAwaited()) {
    // ESC has no effect. Readline would take it for the beginning of a sequence, and with it the next key.
    for (int i = 0; i < num_escapes; ++i) input_.TakeKey();
    return;
  }
  // Vi's insert mode gives ESC its meaning, and so does a search.
  if (rl_editing_mode == 0 || RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH) != 0) return;
  // Readline waits for the key after an ESC that it has, so another ESC must not reach it. Ctrl-G, which follows in its
  // place, ends that.
  const int num_before = num_escapes_;
  num_escapes_ += num_escapes;
  if (num_escapes_ < 2) {
    HandleKeys();
    num_escapes_ = 1;
    return;
  }
  for (int i = 0; i < num_escapes; ++i) input_.TakeKey();
  if (num_before > 0) {
    input_.Feed("\x07");
    HandleKeys();
  }
  num_escapes_ = 0;
  if (rl_end > 0) return;
  rl_callback_handler_remove();
  g_readline.line = "/edit";
  g_readline.has_line = true;
  g_readline.is_typed = false;
}

void LineEditor::HandleKeys() {
  num_escapes_ = 0;
  while (input_.HasKey() && !g_readline.has_line && !g_readline.at_end) {
    rl_callback_read_char();
    if (g_readline.has_line || g_readline.at_end) return;
    UpdateSearchKeys();
    if (MoveViCursorToCluster() && !draws_) rl_redisplay();
    HandleRequest();
  }
}

void LineEditor::HandlePaste() {
  std::optional<std::string> text = input_.TakePaste();
  if (text && RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH) != 0) {
    input_.Feed(SearchText(*text));
    return;
  }
  if (!text || static_cast<size_t>(rl_end) + text->size() > kMaxDraftBytes) {
    PrintAbove([] { PrintNote("[not pasted: a message can have at most 16 MiB]"); });
    return;
  }
  InsertText(*text);
  OnRedisplay();
  if (!draws_) rl_redisplay();
}

void LineEditor::HandleRequest() {
  switch (TakeEditorRequest()) {
    case EditorRequest::kOpenEditor:
      OpenEditor();
      break;
    case EditorRequest::kClearScreen:
      if (!draws_) break;
      // Everything above the draft moves to the scrollback.
      WriteToTerminal(view_.Erase());
      WriteToTerminal("\x1b[" + std::to_string(num_rows_) + "B" + std::string(static_cast<size_t>(num_rows_), '\n') +
                      "\x1b[H");
      g_readline.must_draw = true;
      break;
    default:
      break;
  }
}

void LineEditor::HandleSignal(int signal_number) {
  if (signal_number == SIGTSTP) {
    Suspend();
  } else if (signal_number == SIGINT) {
    HandleInterrupt();
  } else if (signal_number != 0) {
    throw Interrupted(signal_number);
  }
}

void LineEditor::HandleInterrupt() {
  if (input_.IsInPaste()) {
    input_.EndPaste();
    return;
  }
  const std::string draft = CurrentLine();
  const auto now = std::chrono::steady_clock::now();
  if (draft.empty() && last_interrupt_ && now - *last_interrupt_ < std::chrono::seconds(1)) throw Interrupted(SIGINT);
  rl_callback_sigcleanup();
  LeaveDraft();
  rl_free_line_state();
  rl_replace_line("", 1);
  rl_callback_handler_remove();
  if (draft.empty()) {
    last_interrupt_ = now;
    PrintNote("Ctrl-D or /exit quits.");
  } else {
    last_interrupt_.reset();
    if (Remember(draft, /*was_sent=*/false) && !std::exchange(told_about_history_, true)) {
      PrintNote("[cleared; the Up key brings it back]");
    }
  }
  if (on_interrupt_) on_interrupt_();
  Begin(prompt_);
  g_readline.must_draw = true;
}

void LineEditor::HandleWindowChange() {
  TakeWindowChange();
  const int num_rows = TerminalRows(STDOUT_FILENO);
  const int num_columns = TerminalColumns(STDOUT_FILENO);
  if (num_rows == num_rows_ && num_columns == num_columns_) return;
  num_rows_ = num_rows;
  num_columns_ = num_columns;
  view_.Invalidate();
  rl_resize_terminal();
  g_readline.must_draw = true;
}

void LineEditor::Draw() {
  g_readline.must_draw = false;
  if (!draws_) return;
  const std::string prompt = CurrentPrompt();
  const Draft draft = CurrentDraft(prompt);
  // One row above the draft stays visible.
  const DraftLayout layout = LayOutDraft(draft, num_columns_, std::max(1, num_rows_ - 1), first_row_);
  first_row_ = layout.first_row;
  WriteToTerminal(view_.Draw(layout));
}

void LineEditor::DrawSent(const std::string& text) {
  g_readline.must_draw = false;
  const Draft draft = {text, text.size(), prompt_, kContinuationPrompt};
  constexpr int kAllRows = 1 << 30;
  DraftLayout layout = LayOutDraft(draft, num_columns_, kAllRows);
  if (layout.rows.size() < static_cast<size_t>(num_rows_)) {
    WriteToTerminal(view_.Draw(layout) + "\n");
    view_.Forget();
    return;
  }
  if (layout.rows.size() > kMaxSentRows) {
    const size_t num_left_out = layout.rows.size() - kMaxSentRows;
    const auto begin = layout.rows.begin() + kMaxSentRows / 2;
    layout.rows.erase(begin, begin + static_cast<std::ptrdiff_t>(num_left_out));
    const std::string note = "[" + GroupedText(static_cast<int64_t>(num_left_out)) + " more rows]";
    layout.rows.insert(layout.rows.begin() + kMaxSentRows / 2, DraftRow{SafeText(note)});
  }
  std::string bytes = view_.Erase();
  for (const DraftRow& row : layout.rows) {
    bytes += UnwrappedText(row.text);
    bytes += '\n';
  }
  WriteToTerminal(bytes);
}

void LineEditor::LeaveDraft() {
  if (!draws_) {
    rl_crlf();
    std::fflush(rl_outstream);
    return;
  }
  const std::string prompt = CurrentPrompt();
  Draft draft = CurrentDraft(prompt);
  draft.cursor = draft.text.size();
  WriteToTerminal(view_.Draw(LayOutDraft(draft, num_columns_, std::max(1, num_rows_ - 1), first_row_)) + "\n");
  view_.Forget();
  g_readline.must_draw = true;
}

void LineEditor::PrintAbove(std::function<void()> print) {
  if (is_editor_open_) {
    delayed_prints_.push_back(std::move(print));
  } else if (!is_reading_) {
    print();
  } else if (draws_) {
    WriteToTerminal(view_.Erase());
    print();
    g_readline.must_draw = true;
  } else {
    rl_crlf();
    std::fflush(rl_outstream);
    print();
    rl_on_new_line();
    rl_redisplay();
  }
}

void LineEditor::AddWatch(int fd, std::function<void()> callback) {
  RemoveWatch(fd);
  watches_.push_back({fd, std::make_shared<std::function<void()>>(std::move(callback))});
}

void LineEditor::RemoveWatch(int fd) {
  watches_.erase(std::remove_if(watches_.begin(), watches_.end(), [fd](const Watch& watch) { return watch.fd == fd; }),
                 watches_.end());
}

void LineEditor::LendTerminal(const std::function<void()>& run) {
  rl_deprep_terminal();
  SetBracketedPaste(false);
  RestoreTerminal();
  run();
  EnterChatModes();
  PrepareTerminal(1);
  BindEditorKeys();
  SetBracketedPaste(true);
  HandleWindowChange();
  g_readline.must_draw = true;
}

void LineEditor::OpenEditor() {
  if (draws_) {
    WriteToTerminal(view_.Erase());
  } else {
    LeaveDraft();
  }
  std::optional<std::string> edited;
  LendTerminal([&] {
    is_editor_open_ = true;
    edited = EditInEditor(CurrentLine(), [this](int fd, int timeout_ms) {
      std::vector<pollfd> fds = {{fd, POLLIN, 0}};
      Poll(fds, timeout_ms);
    });
    is_editor_open_ = false;
    for (const std::function<void()>& print : std::exchange(delayed_prints_, {})) print();
  });
  if (edited) {
    const std::string text = DraftText(*edited);
    if (text.size() <= kMaxDraftBytes) {
      ReplaceDraft(text);
    } else {
      PrintError("the text of the editor is too long for a message (limit 16 MiB); the draft is unchanged");
    }
  }
  if (!draws_) {
    rl_on_new_line();
    rl_redisplay();
  }
}

void LineEditor::Suspend() {
  LeaveDraft();
  LendTerminal(SuspendProcess);
  if (!draws_) rl_forced_update_display();
}

char** LineEditor::OnComplete(const char*, int start, int end) {
  LineEditor& editor = *g_readline.editor;
  rl_attempted_completion_over = 1;  // never complete file names
  editor.choices_.clear();
  if (editor.completer_ == nullptr) return nullptr;
  Completions completions;
  try {
    completions = editor.completer_({rl_line_buffer, static_cast<size_t>(end)});
  } catch (const std::exception&) {
    return nullptr;  // a file system that fails is no reason to end the chat
  }
  if (completions.choices.empty()) return nullptr;
  if (rl_completion_type == '?') {
    editor.ListChoices(completions.choices);
    return nullptr;
  }
  char** matches = ReadlineMatches(completions, static_cast<size_t>(start));
  editor.choices_ = std::move(completions.choices);
  return matches;
}

void LineEditor::OnDisplayChoices(char**, int, int) { g_readline.editor->ListChoices(g_readline.editor->choices_); }

void LineEditor::ListChoices(const std::vector<CompletionChoice>& choices) {
  const size_t max_lines = static_cast<size_t>(std::max(2, num_rows_ - 3));
  const std::vector<std::string> lines = CompletionLines(choices, num_columns_, max_lines);
  PrintAbove([&] {
    for (const std::string& line : lines) PrintNote(line);
  });
}

int LineEditor::OnInputAvailable() {
  LineEditor& editor = *g_readline.editor;
  // The function both sets and returns the time that readline wants to wait.
  const int timeout_us = rl_set_keyboard_input_timeout(0);
  rl_set_keyboard_input_timeout(timeout_us);
  if (editor.input_.HasKey()) return 1;
  if (editor.is_closed_ || editor.input_.HasPaste()) return 0;
  pollfd wait{STDIN_FILENO, POLLIN, 0};
  if (poll(&wait, 1, timeout_us / 1000) > 0 && !editor.ReadInput()) editor.is_closed_ = true;
  return editor.input_.HasKey() ? 1 : 0;
}

int LineEditor::OnReadKey(std::FILE*) {
  LineEditor& editor = *g_readline.editor;
  while (!editor.input_.HasKey()) {
    // Readline needs the rest of a command here, so it cannot return to the loop. It gets the end of input if something
    // other than a key comes; then the command ends without effect.
    if (editor.is_closed_ || editor.input_.HasPaste() || InterruptWaits().load()) return EOF;
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    const int num_ready =
        poll(&wait, 1, editor.input_.IsWaitingForMore() ? static_cast<int>(kSequenceTime.count()) : 100);
    if (num_ready == 0) editor.input_.Flush();
    if (num_ready > 0 && !editor.ReadInput()) editor.is_closed_ = true;
  }
  return static_cast<unsigned char>(editor.input_.TakeKey());
}

bool LineEditor::Remember(const std::string& line, bool was_sent) {
  if (line.find_first_not_of(" \t\n") == std::string::npos) return false;
  // A message that begins with a blank is not remembered. A draft that Ctrl-C has cleared is, but not in the file.
  const bool is_private = line.starts_with(' ');
  if (is_private && was_sent) return false;
  const HIST_ENTRY* last = history_length > 0 ? history_get(history_base + history_length - 1) : nullptr;
  if (last != nullptr && line == last->line) return true;
  add_history(line.c_str());
  if (history_ == nullptr || is_private) return true;
  try {
    history_->Append(line);
  } catch (const ResourceError& error) {
    PrintWarning(error.what());
    history_.reset();
  }
  return true;
}

}  // namespace vllm::app
