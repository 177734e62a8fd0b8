// Waits for the engine, signals, the reader of standard output, and one more descriptor at the same time. Main thread.
#pragma once

#include <chrono>

#include "engine/frontend/llm_engine.h"

namespace vllm {

struct Wake {
  bool engine = false;  // Step would not block
  bool signal = false;  // TakeSignal would return a signal
  bool input = false;   // `input_fd` is readable or at its end
};

// Returns when one of them is ready or `timeout` has passed. `input_fd` is -1 for none. If `watches_stdout`, throws
// OutputClosed when standard output is a pipe without a reader.
Wake WaitForEngine(const LLMEngine& engine, int input_fd, std::chrono::milliseconds timeout,
                   bool watches_stdout = true);

}  // namespace vllm
