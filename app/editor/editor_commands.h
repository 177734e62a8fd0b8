// The commands that LineEditor adds to readline or puts in the place of readline's own, and the keys that run them.
// They treat a grapheme cluster as one character, and a draft as lines and rows. Readline's state is global, and so is
// theirs; main thread.
//
//   Enter                   sends, or inserts a line break (multi_line.h)
//   Alt-Enter, Ctrl-J, Shift-Enter if the terminal sends CSI 13;2u or CSI 27;2;13~    insert a line break
//   Up, Down, Ctrl-P, Ctrl-N    move by row, and to the history from the first and last row
//   Home, End, Ctrl-A, Ctrl-E   go to the beginning or end of the line, and then of the draft
//   Ctrl-K, Ctrl-U              kill to the end or beginning of the line, or the line break there
//   Ctrl-L                      moves the draft to the top of the screen
//   Ctrl-G                      opens the draft in an editor
//   I, A, C, D, ^, 0, $, a, x, X    in vi mode: act on a line, while readline takes the draft for one line
// A key of the user's inputrc that runs one of readline's commands in this list runs the new one. A key that inputrc
// binds to another command keeps it.
#pragma once

#include <string>
#include <string_view>

#include "app/editor/draft_layout.h"

namespace vllm::app {

// A request of a command to LineEditor.
enum class EditorRequest { kNone, kOpenEditor, kClearScreen };
EditorRequest TakeEditorRequest();

// Binds the keys. Call whenever readline has prepared the terminal, because that changes bindings.
void BindEditorKeys();
// Binds the keys again if readline has begun or ended a search of the history: a search knows only readline's commands.
void UpdateSearchKeys();

// Returns true if readline is in vi's command mode and has read all keys of the previous command.
bool IsViCommandAwaited();
// Call after each key. If vi's command mode has left the cursor behind the last character of a line or inside a
// grapheme cluster, moves it to the beginning of that character and returns true.
bool MoveViCursorToCluster();

// Returns readline's line and cursor, with this prompt. Borrows readline's line until the next command.
Draft CurrentDraft(std::string_view prompt);
// Returns the text before the draft: the prompt of ReadLine, or the message of a search.
std::string CurrentPrompt();
// Replaces readline's line, so that undo restores it.
void ReplaceDraft(const std::string& text);
// Inserts text at the cursor, as one undoable change.
void InsertText(const std::string& text);

inline constexpr std::string_view kContinuationPrompt = "... ";

}  // namespace vllm::app
