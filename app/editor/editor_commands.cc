#include "app/editor/editor_commands.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "app/editor/multi_line.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/text_width.h"
#include "tokenizer/unicode/utf8.h"

// After the standard headers, because these headers need FILE.
#include <readline/history.h>
#include <readline/readline.h>

namespace vllm::app {
namespace {

EditorRequest g_request = EditorRequest::kNone;
bool g_search_keys_are_bound = false;
// The column to which a sequence of Up and Down returns in long rows; nullopt after another command.
std::optional<int> g_goal_column;

std::string_view Line() { return {rl_line_buffer, static_cast<size_t>(rl_end)}; }
size_t Point() { return static_cast<size_t>(rl_point); }

size_t NextCluster(size_t position) { return position + ClusterAt(Line(), position).num_bytes; }

size_t LineBegin() {
  const size_t line_feed = Point() == 0 ? std::string_view::npos : Line().rfind('\n', Point() - 1);
  return line_feed == std::string_view::npos ? 0 : line_feed + 1;
}

size_t LineEnd() { return std::min(Line().find('\n', Point()), Line().size()); }

void SetPoint(size_t position) { rl_point = static_cast<int>(position); }

// Returns true in the command mode of vi, also while an operator such as d waits for its motion.
bool IsViCommandMode() { return rl_get_keymap() == vi_movement_keymap; }

// Runs `command` with the opposite count if `count` is negative. Returns true if it did.
bool RanOpposite(rl_command_func_t* command, int count, int key) {
  if (count >= 0) return false;
  command(-count, key);
  return true;
}

int MoveRight(int count, int key);
int DeleteRight(int count, int key);

int MoveLeft(int count, int key) {
  if (RanOpposite(MoveRight, count, key)) return 0;
  for (; count > 0 && rl_point > 0; --count) SetPoint(PreviousCluster(Line(), Point()));
  return 0;
}

int MoveRight(int count, int key) {
  if (RanOpposite(MoveLeft, count, key)) return 0;
  for (; count > 0 && rl_point < rl_end; --count) SetPoint(NextCluster(Point()));
  return 0;
}

void Delete(size_t begin, size_t end) {
  if (begin == end) return;
  rl_delete_text(static_cast<int>(begin), static_cast<int>(end));
  SetPoint(begin);
}

int DeleteLeft(int count, int key) {
  if (RanOpposite(DeleteRight, count, key)) return 0;
  const size_t end = Point();
  MoveLeft(count, key);
  Delete(Point(), end);
  return 0;
}

int DeleteRight(int count, int key) {
  if (RanOpposite(DeleteLeft, count, key)) return 0;
  const size_t begin = Point();
  MoveRight(count, key);
  Delete(begin, Point());
  return 0;
}

// In vi's command mode, 0 and $ stay in the line.
int GoToLineBegin(int, int) {
  SetPoint(Point() == LineBegin() && !IsViCommandMode() ? 0 : LineBegin());
  return 0;
}

int GoToLineEnd(int, int) {
  size_t end = Point() == LineEnd() && !IsViCommandMode() ? Line().size() : LineEnd();
  // The operators d, c and y include the character to which $ moves, which must not be the line break.
  if (RL_ISSTATE(RL_STATE_VIMOTION) != 0 && Point() < end && end < Line().size()) {
    do --end;
    while (tokenizer::IsUtf8Continuation(Line()[end]));
  }
  SetPoint(end);
  return 0;
}

int KillToLineEnd(int, int) {
  const size_t end = Point() < Line().size() && LineEnd() == Point() ? Point() + 1 : LineEnd();
  rl_kill_text(rl_point, static_cast<int>(end));
  return 0;
}

int KillToLineBegin(int, int) {
  const size_t begin = Point() > 0 && LineBegin() == Point() ? Point() - 1 : LineBegin();
  rl_kill_text(rl_point, static_cast<int>(begin));
  SetPoint(begin);
  return 0;
}

int GoUp(int count, int key);
int GoDown(int count, int key);

int GoByRow(int direction, int count, int key) {
  if (rl_last_func != GoUp && rl_last_func != GoDown) g_goal_column.reset();
  for (; count > 0; --count) {
    const std::string prompt = CurrentPrompt();
    const Draft draft = CurrentDraft(prompt);
    const int num_columns = TerminalColumns(STDOUT_FILENO);
    if (!g_goal_column) g_goal_column = LayOutDraft(draft, num_columns, 1).cursor_column;
    if (const auto position = MoveByRow(draft, num_columns, direction, *g_goal_column)) {
      SetPoint(*position);
      continue;
    }
    g_goal_column.reset();
    if (direction < 0) {
      rl_get_previous_history(1, key);
    } else {
      rl_get_next_history(1, key);
    }
  }
  return 0;
}

int GoUp(int count, int key) { return count < 0 ? GoByRow(1, -count, key) : GoByRow(-1, count, key); }
int GoDown(int count, int key) { return count < 0 ? GoByRow(-1, -count, key) : GoByRow(1, count, key); }

int InsertLineBreak(int, int) {
  rl_insert_text("\n");
  return 0;
}

int AcceptDraft(int count, int key) {
  if (ContinuesAfterBackslash(Line(), Point())) {
    rl_begin_undo_group();
    Delete(Point() - 1, Point());
    rl_insert_text("\n");
    rl_end_undo_group();
    return 0;
  }
  if (HasOpenBlock(Line())) return InsertLineBreak(1, key);
  return rl_newline(count, key);
}

int ViGoToText(int, int) {
  SetPoint(LineBegin());
  while (Point() < LineEnd() && (Line()[Point()] == ' ' || Line()[Point()] == '\t')) ++rl_point;
  return 0;
}

int ViInsertAtLineBegin(int, int key) {
  SetPoint(LineBegin());
  return rl_vi_insert_mode(1, key);
}

int ViAppend(int, int key) {
  if (Point() < LineEnd()) SetPoint(NextCluster(Point()));
  return rl_vi_insert_mode(1, key);
}

int ViAppendAtLineEnd(int, int key) {
  SetPoint(LineEnd());
  return rl_vi_insert_mode(1, key);
}

int ViDeleteRight(int count, int) {
  size_t end = Point();
  for (; count > 0 && end < LineEnd(); --count) end = NextCluster(end);
  rl_kill_text(rl_point, static_cast<int>(end));
  return 0;
}

int ViDeleteLeft(int count, int) {
  size_t begin = Point();
  for (; count > 0 && begin > LineBegin(); --count) begin = PreviousCluster(Line(), begin);
  rl_kill_text(static_cast<int>(begin), rl_point);
  SetPoint(begin);
  return 0;
}

// D and d.
int ViDeleteTo(int count, int key) {
  if (key != 'D') return rl_vi_delete_to(count, key);
  rl_kill_text(rl_point, static_cast<int>(LineEnd()));
  return 0;
}

// C and c.
int ViChangeTo(int count, int key) {
  if (key != 'C') return rl_vi_change_to(count, key);
  rl_kill_text(rl_point, static_cast<int>(LineEnd()));
  return rl_vi_insert_mode(1, key);
}

int ViLeaveInsertMode(int count, int key) {
  const int begin = rl_point;
  const bool is_at_line_begin = Point() == LineBegin();
  rl_vi_movement_mode(count, key);
  if (is_at_line_begin) rl_point = begin;
  return 0;
}

// Replaces the function of ESC in vi's insert mode. It is stored in the keymap of the sequences that begin with ESC.
void BindViEscape() {
  const KEYMAP_ENTRY& escape = vi_insertion_keymap[ESC];
  if (escape.type != ISKMAP) return;
  KEYMAP_ENTRY& alone = reinterpret_cast<Keymap>(escape.function)[ANYOTHERKEY];
  if (alone.type == ISFUNC && alone.function == rl_vi_movement_mode) alone.function = ViLeaveInsertMode;
}

int ClearScreen(int, int) {
  g_request = EditorRequest::kClearScreen;
  return 0;
}

int OpenEditor(int, int) {
  g_request = EditorRequest::kOpenEditor;
  return 0;
}

// Binds every key that runs `from` to `to`.
void Replace(rl_command_func_t* from, rl_command_func_t* to) {
  for (Keymap map : {emacs_standard_keymap, vi_insertion_keymap, vi_movement_keymap}) {
    char** sequences = rl_invoking_keyseqs_in_map(from, map);
    if (sequences == nullptr) continue;
    for (char** sequence = sequences; *sequence != nullptr; ++sequence) {
      rl_bind_keyseq_in_map(*sequence, to, map);
      std::free(*sequence);
    }
    std::free(sequences);
  }
}

// Binds a key unless inputrc has bound it to a command other than readline's default.
void Bind(const char* sequence, rl_command_func_t* command, Keymap map,
          std::initializer_list<rl_command_func_t*> defaults) {
  int type = 0;
  rl_command_func_t* bound = rl_function_of_keyseq(sequence, map, &type);
  if (bound != nullptr && type != ISFUNC && type != ISKMAP) return;
  const bool is_free = bound == nullptr || bound == command || type == ISKMAP;
  if (is_free || std::find(defaults.begin(), defaults.end(), bound) != defaults.end()) {
    rl_bind_keyseq_in_map(sequence, command, map);
  }
}

}  // namespace

EditorRequest TakeEditorRequest() { return std::exchange(g_request, EditorRequest::kNone); }

void BindEditorKeys() {
  for (Keymap map : {emacs_standard_keymap, vi_insertion_keymap}) {
    for (const char* sequence : {"\x1b\r", "\n", "\x1b\n", "\x1b[13;2u", "\x1b[27;2;13~"}) {
      Bind(sequence, InsertLineBreak, map, {rl_newline, rl_vi_editing_mode, rl_insert});
    }
    Bind("\x07", OpenEditor, map, {rl_abort, rl_insert});
  }
  // Without this, the rest of the sequence of an unknown key is inserted as text.
  for (Keymap map : {emacs_standard_keymap, vi_insertion_keymap, vi_movement_keymap}) {
    rl_bind_keyseq_in_map("\x1b[", rl_skip_csi_sequence, map);
  }
  constexpr auto kReplaced = std::to_array<std::pair<rl_command_func_t*, rl_command_func_t*>>({
      {rl_newline, AcceptDraft},       {rl_backward_char, MoveLeft},
      {rl_forward_char, MoveRight},    {rl_delete, DeleteRight},
      {rl_beg_of_line, GoToLineBegin}, {rl_end_of_line, GoToLineEnd},
      {rl_kill_line, KillToLineEnd},   {rl_unix_line_discard, KillToLineBegin},
      {rl_get_previous_history, GoUp}, {rl_get_next_history, GoDown},
      {rl_clear_screen, ClearScreen},  {rl_refresh_line, ClearScreen},
      {rl_vi_first_print, ViGoToText}, {rl_vi_insert_beg, ViInsertAtLineBegin},
      {rl_vi_append_mode, ViAppend},   {rl_vi_append_eol, ViAppendAtLineEnd},
      {rl_vi_delete, ViDeleteRight},   {rl_vi_delete_to, ViDeleteTo},
      {rl_vi_change_to, ViChangeTo},   {rl_vi_rubout, ViDeleteLeft},
  });
  for (const auto& [from, to] : kReplaced) Replace(from, to);
  BindViEscape();
  Replace(rl_rubout, DeleteLeft);
  g_search_keys_are_bound = false;
}

void UpdateSearchKeys() {
  const bool is_searching = RL_ISSTATE(RL_STATE_ISEARCH) != 0;
  if (is_searching == g_search_keys_are_bound) return;
  g_search_keys_are_bound = is_searching;
  Replace(is_searching ? DeleteLeft : rl_rubout, is_searching ? rl_rubout : DeleteLeft);
}

bool IsViCommandAwaited() {
  constexpr unsigned long kInsideCommand = RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_VIMOTION |
                                           RL_STATE_CHARSEARCH | RL_STATE_NUMERICARG | RL_STATE_MULTIKEY;
  return IsViCommandMode() && RL_ISSTATE(kInsideCommand) == 0;
}

bool MoveViCursorToCluster() {
  if (!IsViCommandAwaited()) return false;
  const size_t before = Point();
  if (Point() == LineEnd()) {
    if (Point() > LineBegin()) SetPoint(PreviousCluster(Line(), Point()));
  } else {
    SetPoint(PreviousCluster(Line(), Point() + 1));
  }
  return Point() != before;
}

Draft CurrentDraft(std::string_view prompt) { return {Line(), Point(), prompt, kContinuationPrompt}; }

std::string CurrentPrompt() {
  std::string prompt(SafeLine(rl_display_prompt == nullptr ? "" : rl_display_prompt).view());
  std::replace(prompt.begin(), prompt.end(), '\t', ' ');
  return prompt;
}

void ReplaceDraft(const std::string& text) {
  rl_begin_undo_group();
  rl_delete_text(0, rl_end);
  rl_point = 0;
  rl_insert_text(text.c_str());
  rl_end_undo_group();
}

void InsertText(const std::string& text) { rl_insert_text(text.c_str()); }

}  // namespace vllm::app
