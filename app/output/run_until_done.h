// RunUntilDone: the loop of every command that generates text. It polls the engine, signals, the reader of standard
// output and, for batches, the input at the same time. Main thread.
#pragma once

#include <functional>
#include <vector>

#include "engine/frontend/llm_engine.h"

namespace vllm::app {

struct RunCallbacks {
  // Called after each call of LLMEngine::Step with its outputs, of which there may be none.
  std::function<void(const std::vector<RequestOutput>& outputs)> on_outputs;
  // Called when a signal has arrived; TakeSignal returns it. The default throws Interrupted.
  std::function<void()> on_signal;

  // Called before each wait, so that the caller can add requests while others run. Returns true if more requests may
  // come; the loop then continues even if no request is unfinished.
  std::function<bool()> add_requests;
  // Returns the descriptor to poll for input, or -1 while no input is wanted.
  std::function<int()> input_fd;
  // Called when the input is readable or has ended.
  std::function<void()> on_input;

  // If true, RunUntilDone throws OutputClosed when standard output is a pipe without a reader.
  bool watches_stdout = true;
};

// Steps the engine until no request is unfinished and add_requests, if set, returns false. Throws what the callbacks
// and LLMEngine::Step throw, and OutputClosed.
void RunUntilDone(LLMEngine& engine, const RunCallbacks& callbacks);

}  // namespace vllm::app
