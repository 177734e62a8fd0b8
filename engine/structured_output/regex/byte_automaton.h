// ByteAutomaton: a deterministic automaton over bytes for a set of texts that is awkward as a regular expression, such
// as the decimal numbers that are a multiple of 0.01. A RegexStore combines it with regular expressions. Immutable; any
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/structured_output/regex/byte_set.h"

namespace vllm {

class ByteAutomaton {
 public:
  virtual ~ByteAutomaton() = default;

  // Returns the state after `byte`, or -1 if no text of the set continues with it. From every other state that is
  // returned, some final state can be reached. The first state is 0; a state is less than 2^31.
  virtual int32_t Next(int32_t state, uint8_t byte) const = 0;
  virtual bool IsFinal(int32_t state) const = 0;
  // Returns a number of bytes such that no shorter text leads from the state to a final one. If it is exact, it guides
  // searches for a text.
  virtual uint32_t MinBytes(int32_t state) const { return IsFinal(state) ? 0 : 1; }
  // Bytes that are in the same sets have the same Next in every state.
  virtual std::vector<ByteSet> ByteClasses() const = 0;
};

}  // namespace vllm
