// Saves the terminal's modes when the program starts, and restores them when it ends: by return, by a signal that it
// handles, or by a crash. Signal handlers use only async-signal-safe calls. The state is global; main thread.
#pragma once

#include <cstddef>

namespace vllm::app {

// Saves the modes of standard input if it is a terminal. From now on the handlers of fatal signals restore them.
void SaveTerminal();

// Restores the modes, disables bracketed paste if NoteBracketedPaste says it is on, and ends colors and links that
// NoteUnfinishedStyle says are unfinished. Async-signal-safe, idempotent.
void RestoreTerminal();

// Call before a full-screen view opens, with the descriptors of its terminal, and with -1 after it has closed.
// RestoreTerminal then leaves the alternate screen, shows the cursor, and restores the modes of `key_fd`, even if
// standard input is not a terminal.
void NoteScreen(int output_fd, int key_fd);

// Call when readline enables or disables bracketed paste, so that RestoreTerminal knows whether to disable it.
void NoteBracketedPaste(bool on);

// Call before and after a write of text with styles, which a signal can interrupt.
void NoteUnfinishedStyle(bool is_unfinished);

// Turns off the terminal's line editing and echo until RestoreTerminal. Keys then reach the program at once, even those
// typed while it is busy. The chat calls this, because with line editing a Ctrl-D that is typed ahead would be lost.
// Enter arrives as a carriage return, so that it can be told from Ctrl-J, a line feed. Ctrl-C and Ctrl-Z discard
// neither keys nor output.
void EnterChatModes();
// Returns the number of bytes that had been typed, but not read, at the last EnterChatModes, and sets it to 0. In these
// bytes a line feed may be an Enter.
size_t TakeNumBytesTypedBefore();

// During its lifetime, typed keys are not echoed into a streaming answer. The next prompt reads the keys.
class EchoOff {
 public:
  EchoOff();
  ~EchoOff();
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;

 private:
  bool was_on_ = false;
};

}  // namespace vllm::app
