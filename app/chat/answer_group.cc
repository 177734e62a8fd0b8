#include "app/chat/answer_group.h"

#include "app/chat/answer_signals.h"
#include "app/output/prompt_status.h"
#include "app/output/run_until_done.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {
namespace {

// Prints the answers in order. The text of an answer waits until the answers before it have ended.
class AnswerPrinter {
 public:
  AnswerPrinter(const std::vector<Answer>& answers, const std::deque<AnswerCalls>& calls, int64_t first_number,
                AnswerDisplay& display)
      : answers_(answers), calls_(calls), first_number_(first_number), display_(display) {}

  void Update() {
    while (current_ < answers_.size()) {
      const Answer& answer = answers_[current_];
      const bool has_ended = answer.finish_reason != FinishReason::kNone;
      if (!has_ended && answer.text.empty()) return;
      // The calls of an answer without text are shown when they run.
      if (answer.text.empty() && !calls_[current_].calls().empty()) {
        ++current_;
        continue;
      }
      if (!has_heading_) PrintNote("[answer " + std::to_string(first_number_ + static_cast<int64_t>(current_)) + "]");
      has_heading_ = true;
      display_.Feed(std::string_view(answer.text).substr(num_bytes_), has_ended);
      num_bytes_ = answer.text.size();
      if (!has_ended) return;
      num_bytes_ = 0;
      has_heading_ = false;
      ++current_;
    }
  }

  // Ends the answer of which only the beginning is shown, so that something else can be printed.
  void End() {
    if (has_heading_) display_.Feed("", true);
    has_heading_ = false;
  }

 private:
  const std::vector<Answer>& answers_;
  const std::deque<AnswerCalls>& calls_;
  int64_t first_number_;
  AnswerDisplay& display_;
  size_t current_ = 0;    // the answer that is shown
  size_t num_bytes_ = 0;  // the bytes of its text that have been shown
  bool has_heading_ = false;
};

}  // namespace

void StreamAnswers(LoadedModel& model, const std::string& request_id, int64_t first_number,
                   const std::function<void()>& on_progress, std::deque<ReasoningDisplay>& reasonings,
                   std::deque<AnswerCalls>& calls, AnswerDisplay& display, std::vector<Answer>& answers) {
  LLMEngine& engine = *model.engine;
  AnswerPrinter printer(answers, calls, first_number, display);
  PromptStatus status(engine);
  AnswerSignals signals(engine, request_id, display, [&] { status.Clear(); });
  RunCallbacks callbacks;
  callbacks.background = model.background;
  callbacks.on_signal = [&] { signals.Take(); };
  callbacks.on_outputs = [&](const std::vector<RequestOutput>& outputs) {
    if (!outputs.empty()) status.End();
    status.Update();
    std::string error;
    const auto take = [&](const CompletionOutput& completion) {
      const auto index = static_cast<size_t>(completion.index);
      Answer& answer = answers.at(index);
      answer.token_ids.insert(answer.token_ids.end(), completion.token_ids.begin(), completion.token_ids.end());
      answer.finish_reason = completion.finish_reason;
      const bool is_final = answer.finish_reason != FinishReason::kNone;
      answer.text += calls.at(index).Take(reasonings.at(index).Take(completion), is_final, WasCut(completion));
    };
    for (const RequestOutput& output : outputs) {
      if (output.request_id != request_id) continue;  // of an aborted request whose answer could not be written
      for (const CompletionOutput& completion : output.outputs) {
        take(completion);
        Answer& answer = answers.at(static_cast<size_t>(completion.index));
        answer.stats.num_cached_tokens = output.num_cached_tokens;
        answer.stats.metrics = output.metrics;
        if (completion.finish_reason == FinishReason::kError) error = output.error;
      }
    }
    if (outputs.empty()) return display.Tick();
    // First, because an answer is not lost if it cannot be printed.
    on_progress();
    printer.Update();
    if (!error.empty()) {
      printer.End();
      PrintError(error);
    }
  };
  RunUntilDone(engine, callbacks);
  printer.End();
  PrintEngineWarning(engine);
}

}  // namespace vllm::app
