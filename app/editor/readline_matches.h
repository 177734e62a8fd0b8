// Passes completions to readline. Readline's state is global; main thread.
#pragma once

#include <cstddef>

#include "app/editor/completer.h"

namespace vllm::app {

// Returns the completions as rl_attempted_completion_function returns them, and sets the character that follows a
// single one. `start` is where the text that readline replaces begins: after the last blank, so a choice may begin
// before it. The list is readline's, which frees it. REQUIRES: there is a choice.
char** ReadlineMatches(const Completions& completions, size_t start);

}  // namespace vllm::app
