// Waiting for the engine while signals, the output's reader and another descriptor are watched too. Main thread.
#pragma once

#include <chrono>

#include "engine/frontend/llm_engine.h"

namespace vllm {

struct Wake {
  bool engine = false;  // Step would not wait
  bool signal = false;  // TakeSignal has something
  bool input = false;   // `input_fd` can be read, or is at its end
};

// `input_fd` -1: none. With `watches_stdout`, throws OutputClosed when standard output is a pipe whose reader is gone.
Wake WaitForEngine(const LLMEngine& engine, int input_fd, std::chrono::milliseconds timeout,
                   bool watches_stdout = true);

}  // namespace vllm
