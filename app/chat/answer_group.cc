#include "app/chat/answer_group.h"

#include <signal.h>

#include <optional>

#include "app/output/prompt_status.h"
#include "app/output/run_until_done.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"

namespace vllm::app {
namespace {

// Prints the answers in order: an answer is printed as far as it is known once all answers before it have ended.
class AnswerPrinter {
 public:
  AnswerPrinter(const std::vector<Answer>& answers, int64_t first_number)
      : answers_(answers), first_number_(first_number) {}

  void Update() {
    while (current_ < answers_.size()) {
      const Answer& answer = answers_[current_];
      const bool has_ended = answer.finish_reason != FinishReason::kNone;
      if (!has_ended && answer.token_ids.empty()) return;
      if (!has_heading_) PrintNote("[answer " + std::to_string(first_number_ + static_cast<int64_t>(current_)) + "]");
      has_heading_ = true;
      SafeText text;
      filter_.Feed(std::string_view(answer.text).substr(num_bytes_), text);
      num_bytes_ = answer.text.size();
      if (has_ended) filter_.Flush(text);
      if (!text.empty()) at_line_start_ = text.view().back() == '\n';
      StandardOutput().Write(text);
      if (!has_ended) return;
      EndLine();
      num_bytes_ = 0;
      has_heading_ = false;
      ++current_;
    }
  }

  void EndLine() {
    if (!at_line_start_) StandardOutput().Write(SafeText("\n"));
    at_line_start_ = true;
  }

 private:
  const std::vector<Answer>& answers_;
  int64_t first_number_;
  size_t current_ = 0;    // the answer that is being printed
  size_t num_bytes_ = 0;  // the bytes of its text that have been printed
  bool has_heading_ = false;
  bool at_line_start_ = true;
  SafeTextFilter filter_;
};

}  // namespace

void StreamAnswers(LoadedModel& model, const std::string& request_id, int64_t first_number,
                   const std::function<void()>& on_progress, std::vector<Answer>& answers) {
  LLMEngine& engine = *model.engine;
  std::optional<EchoOff> echo_off;
  echo_off.emplace();
  AnswerPrinter printer(answers, first_number);
  PromptStatus status(engine);
  RunCallbacks callbacks;
  callbacks.background = model.background;
  callbacks.on_signal = [&] {
    const int signal_number = TakeSignal();
    if (signal_number == SIGINT) {
      engine.AbortRequest(request_id);
    } else if (signal_number == SIGTSTP) {
      status.Clear();
      echo_off.reset();
      RestoreTerminal();
      SuspendProcess();
      EnterChatModes();
      echo_off.emplace();
    } else if (signal_number != 0) {
      throw Interrupted(signal_number);
    }
  };
  callbacks.on_outputs = [&](const std::vector<RequestOutput>& outputs) {
    if (!outputs.empty()) status.End();
    status.Update();
    std::string error;
    for (const RequestOutput& output : outputs) {
      for (const CompletionOutput& completion : output.outputs) {
        Answer& answer = answers.at(static_cast<size_t>(completion.index));
        answer.token_ids.insert(answer.token_ids.end(), completion.token_ids.begin(), completion.token_ids.end());
        answer.text += completion.text;
        answer.finish_reason = completion.finish_reason;
        answer.stats.num_cached_tokens = output.num_cached_tokens;
        answer.stats.metrics = output.metrics;
        if (completion.finish_reason == FinishReason::kError) error = output.error;
      }
    }
    if (outputs.empty()) return;
    // First, because an answer is not lost if it cannot be printed.
    on_progress();
    printer.Update();
    if (!error.empty()) {
      printer.EndLine();
      PrintError(error);
    }
  };
  RunUntilDone(engine, callbacks);
}

}  // namespace vllm::app
