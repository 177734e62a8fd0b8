// The terminal's modes as they were when the program started, and putting them back on every way out: return, signals,
// and crashes (from the signal handler, with async-signal-safe calls only). One set a process.
#pragma once

namespace vllm {

// Remembers the modes of the terminal on stdin, when it is one, and restores them on fatal signals from now on.
void SaveTerminal();

// Puts the modes back and turns bracketed paste off when SetBracketedPaste turned it on. Async-signal-safe, idempotent.
void RestoreTerminal();

// Told by whoever lets readline switch bracketed paste on, so that RestoreTerminal knows to switch it off.
void NoteBracketedPaste(bool on);

// For a chat: keys reach the program at once and as they are, also those typed while it is busy. In the terminal's own
// line mode a Ctrl-D typed ahead would be lost. Until RestoreTerminal.
void EnterChatModes();

// While alive, keys typed are not echoed into a streaming answer; they wait for the next prompt.
class EchoOff {
 public:
  EchoOff();
  ~EchoOff();
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;
};

}  // namespace vllm
