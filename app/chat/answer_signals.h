// AnswerSignals: handles the signals that arrive while one or several answers are generated. Owned by the function that
// waits for them; main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/markdown/answer_display.h"
#include "app/terminal/terminal_modes.h"
#include "engine/frontend/llm_engine.h"

namespace vllm::app {

class AnswerSignals {
 public:
  // Turns the echo of typed keys off until it is destroyed. Borrows its arguments. `clear_status` erases the lines that
  // are shown only while the answer is generated.
  AnswerSignals(LLMEngine& engine, const std::string& request_id, AnswerDisplay& display,
                std::function<void()> clear_status);

  // Takes a pending signal. SIGINT aborts the request, and SIGTSTP stops the process with the terminal restored. Throws
  // Interrupted on other signals.
  void Take();

 private:
  LLMEngine& engine_;
  const std::string& request_id_;
  AnswerDisplay& display_;
  std::function<void()> clear_status_;
  std::optional<EchoOff> echo_off_;
};

}  // namespace vllm::app
