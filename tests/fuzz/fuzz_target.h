// One function that a fuzzer calls with bytes of its making, and that the normal test run calls with every file of the
// committed corpus (tests/data/fuzz/NAME). It returns when the bytes were handled, be it by a refusal; a broken promise
// aborts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace vllm {

void FuzzOne(std::string_view bytes);

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace vllm
