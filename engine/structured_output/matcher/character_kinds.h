// Character kinds: the plain characters (plain_text.h) in a few sets, such that most patterns repeat whole sets. A
// subtree of tokens may follow as a whole where the grammar repeats all kinds that occur in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/structured_output/matcher/plain_text.h"

namespace vllm {

// A set of kinds: kind k is bit k.
using CharacterKinds = uint32_t;

constexpr uint32_t kNonAsciiKind = 30;
constexpr uint32_t kNotPlainKind = 31;  // of bytes that are not in plain text

// Returns the kind of the character that begins with `byte`.
constexpr uint32_t CharacterKindOf(uint8_t byte) {
  constexpr std::array<uint8_t, 128> kKinds = [] {
    std::array<uint8_t, 128> kinds{};
    const auto set = [&](const char* characters, uint8_t kind) {
      for (; *characters != 0; ++characters) kinds[static_cast<size_t>(*characters)] = kind;
    };
    // Those that patterns tell apart: digits, hexadecimal digits, and letters.
    set("0", 1);
    set("123456789", 2);
    set("abcdef", 3);
    set("ghijklmnopqrstuvwxyz", 4);
    set("ABCDEF", 5);
    set("GHIJKLMNOPQRSTUVWXYZ", 6);
    uint8_t kind = 7;
    for (const char* group : {" ", "_", "-", ".", "/", ":", ",",  ";",  "@",  "+", "#",
                              "%", "&", "=", "?", "!", "*", "()", "[]", "{}", "<>"}) {
      set(group, kind++);
    }
    return kinds;  // the others are of kind 0
  }();
  auto state = PlainTextState::kBoundary;
  if (!NextPlainText(state, byte)) return kNotPlainKind;
  return byte < 128 ? kKinds[byte] : kNonAsciiKind;
}

}  // namespace vllm
