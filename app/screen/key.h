// Key: one key press or event of a full-screen view. A plain value; any thread.
#pragma once

#include <cstdint>

namespace vllm::app {

enum class KeyCode : uint8_t {
  kNone,       // the wait ended without a key: its time is over, or another descriptor is readable
  kCharacter,  // Key::character
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kEscape,
  kTab,
  kBackspace,
  kDelete,
  kF1,
  kF3,
  kF6,
  kF9,
  kF10,
  kOther,      // a key that has no code here
  kInterrupt,  // Ctrl-C
  kResize,     // the window has a new size
  kRedraw,     // the program was stopped and continued, so the screen must be drawn again
  kHangup,     // the terminal is gone
};

struct Key {
  KeyCode code = KeyCode::kNone;
  char32_t character = 0;

  bool Is(char32_t c) const { return code == KeyCode::kCharacter && character == c; }
  friend bool operator==(const Key&, const Key&) = default;
};

}  // namespace vllm::app
