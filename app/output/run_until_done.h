// RunUntilDone: the loop of every command that generates text. It polls the engine, signals, the reader of standard
// output and, for batches, the input at the same time. BackgroundWork is a batch whose requests run on the engine of a
// chat. Main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/frontend/llm_engine.h"

namespace vllm::app {

// Requests that run while the caller waits for others, or for keys. Its owner is the batch command.
struct BackgroundWork {
  // Adds requests while the engine has room for them.
  std::function<void()> add_requests;
  // Returns the number of its requests that it has added and whose end it has not seen.
  std::function<int64_t()> num_unfinished;
  // Returns true if the request belongs to the background.
  std::function<bool(const std::string& request_id)> owns;
  // Receives an output of one of its requests.
  std::function<void(const RequestOutput& output)> on_output;
  // Returns true if all of its work is done.
  std::function<bool()> is_done;
  // Returns how far it is, for the user.
  std::function<std::string()> progress_text;
};

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

  // If not null, its requests continue, and RunUntilDone returns without waiting for them. Borrowed.
  const BackgroundWork* background = nullptr;
  // Returns a further descriptor to poll, such as that of a view's keys, or -1. on_outputs is called when it is
  // readable.
  std::function<int()> other_fd;

  // If true, RunUntilDone throws OutputClosed when standard output is a pipe without a reader.
  bool watches_stdout = true;
};

// Steps the engine until no request is unfinished, other than those of the background, and add_requests, if set,
// returns false. Throws what the callbacks and LLMEngine::Step throw, and OutputClosed.
void RunUntilDone(LLMEngine& engine, const RunCallbacks& callbacks);

// Gives the background the outputs that the engine has, without waiting, and lets it add requests. Call this when
// LLMEngine::OutputFd() is readable while only requests of the background run. Throws what LLMEngine::Step throws.
void ServeBackground(LLMEngine& engine, const BackgroundWork& background);

// Prints LLMEngine::TakeWarning, if there is one. The loop itself does not, because an answer may be half written.
void PrintEngineWarning(LLMEngine& engine);

}  // namespace vllm::app
