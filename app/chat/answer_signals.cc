#include "app/chat/answer_signals.h"

#include <signal.h>

#include <utility>

#include "app/terminal/signals.h"

namespace vllm::app {

AnswerSignals::AnswerSignals(LLMEngine& engine, const std::string& request_id, AnswerDisplay& display,
                             std::function<void()> clear_status)
    : engine_(engine), request_id_(request_id), display_(display), clear_status_(std::move(clear_status)) {
  echo_off_.emplace();
}

void AnswerSignals::Take() {
  const int signal_number = TakeSignal();
  if (signal_number == SIGINT) {
    engine_.AbortRequest(request_id_);
  } else if (signal_number == SIGTSTP) {
    clear_status_();
    display_.Suspend();
    echo_off_.reset();
    RestoreTerminal();
    SuspendProcess();
    EnterChatModes();
    echo_off_.emplace();
    display_.Resume();
  } else if (signal_number != 0) {
    throw Interrupted(signal_number);
  }
}

}  // namespace vllm::app
