// Plain text: well-formed UTF-8 without quotation marks, backslashes and control characters. It needs no escapes in a
// JSON string. Most tokens of a vocabulary are plain, and most positions in a string allow all of them.
//
// PlainTextState is a state of the automaton that reads it byte by byte.
#pragma once

#include <cstdint>

namespace vllm {

// kBoundary: before a character. kNotPlain: after a byte that no plain text has there. The others: inside a character.
enum class PlainTextState : uint8_t {
  kBoundary,
  kLast,
  kLastTwo,
  kAfterE0,
  kAfterEd,
  kAfterF0,
  kLastThree,
  kAfterF4,
  kNotPlain
};
constexpr int kNumPlainTextStates = 8;  // without kNotPlain

// Moves the state past `byte`. Returns false and leaves it unchanged if no plain text continues with it.
constexpr bool NextPlainText(PlainTextState& state, uint8_t byte) {
  using enum PlainTextState;
  const bool is_continuation = byte >= 0x80 && byte <= 0xBF;
  switch (state) {
    case kBoundary:
      if (byte < 0x80) return byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7F;
      if (byte < 0xC2 || byte > 0xF4) return false;
      if (byte < 0xE0) {
        state = kLast;
      } else if (byte < 0xF0) {
        state = byte == 0xE0 ? kAfterE0 : byte == 0xED ? kAfterEd : kLastTwo;
      } else {
        state = byte == 0xF0 ? kAfterF0 : byte == 0xF4 ? kAfterF4 : kLastThree;
      }
      return true;
    case kLast:
      if (is_continuation) state = kBoundary;
      return is_continuation;
    case kLastTwo:
      if (is_continuation) state = kLast;
      return is_continuation;
    case kLastThree:
      if (is_continuation) state = kLastTwo;
      return is_continuation;
    case kAfterE0:
      if (!is_continuation || byte < 0xA0) return false;
      state = kLast;
      return true;
    case kAfterEd:
      if (!is_continuation || byte > 0x9F) return false;
      state = kLast;
      return true;
    case kAfterF0:
      if (!is_continuation || byte < 0x90) return false;
      state = kLastTwo;
      return true;
    case kAfterF4:
      if (!is_continuation || byte > 0x8F) return false;
      state = kLastTwo;
      return true;
    case kNotPlain:
      return false;
  }
  return false;
}

}  // namespace vllm
