#include "app/chat/answer_stream.h"

#include <unistd.h>

#include <array>
#include <optional>

#include "app/chat/answer_signals.h"
#include "app/output/prompt_status.h"
#include "app/output/run_until_done.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/type_ahead.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// Reads the keys that are typed while the model thinks. Ctrl-T aborts the request; the others are for the next prompt.
class EndThinkingKey {
 public:
  // Borrows its arguments.
  EndThinkingKey(LLMEngine& engine, const std::string& request_id, const ReasoningDisplay& reasoning)
      : engine_(engine),
        request_id_(request_id),
        reasoning_(reasoning),
        is_open_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {}

  // Returns the descriptor to poll for keys, or -1.
  int input_fd() const { return is_open_ && !is_pressed_ && reasoning_.is_thinking() ? STDIN_FILENO : -1; }
  void Read() {
    constexpr char kControlT = 0x14;
    std::array<char, 256> buffer{};
    const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
    is_open_ = count > 0;
    std::string keys(buffer.data(), static_cast<size_t>(count > 0 ? count : 0));
    if (const size_t at = keys.find(kControlT); at != std::string::npos) {
      is_pressed_ = true;
      keys.erase(at, 1);
    }
    KeepTypedKeys(keys);
  }
  // Call after the outputs of a step were taken, so that no token is lost. Waits for the end of a character.
  void AbortIfPressed() {
    constexpr int kMaxWaits = 8;
    if (!is_pressed_ || is_aborted_ || !reasoning_.is_thinking()) return;
    if (reasoning_.is_inside_character() && ++num_waits_ < kMaxWaits) return;
    is_aborted_ = true;
    engine_.AbortRequest(request_id_);
  }
  bool has_aborted() const { return is_aborted_; }

 private:
  LLMEngine& engine_;
  const std::string& request_id_;
  const ReasoningDisplay& reasoning_;
  bool is_open_;
  bool is_pressed_ = false;
  bool is_aborted_ = false;
  int num_waits_ = 0;
};

}  // namespace

void StreamAnswer(LoadedModel& model, const std::string& request_id, const std::function<void()>& on_progress,
                  ReasoningDisplay& reasoning, AnswerCalls& calls, AnswerDisplay& display, Answer& answer) {
  LLMEngine& engine = *model.engine;
  bool is_shown = false;
  std::optional<RequestError> rejection;
  PromptStatus status(engine);
  AnswerSignals signals(engine, request_id, display, [&] {
    status.Clear();
    reasoning.Clear();
  });
  RunCallbacks callbacks;
  callbacks.background = model.background;
  callbacks.on_signal = [&] { signals.Take(); };
  EndThinkingKey key(engine, request_id, reasoning);
  callbacks.input_fd = [&] { return key.input_fd(); };
  callbacks.on_input = [&] { key.Read(); };
  callbacks.on_outputs = [&](const std::vector<RequestOutput>& outputs) {
    if (!outputs.empty()) status.End();
    status.Update();
    for (const RequestOutput& output : outputs) {
      if (output.request_id != request_id) continue;  // of an aborted request whose answer could not be written
      if (output.rejected) {
        rejection.emplace(output.error);
        continue;
      }
      answer.stats.num_cached_tokens = output.num_cached_tokens;
      answer.stats.metrics = output.metrics;
      for (const CompletionOutput& completion : output.outputs) {
        answer.token_ids.insert(answer.token_ids.end(), completion.token_ids.begin(), completion.token_ids.end());
        const bool is_final = completion.finish_reason != FinishReason::kNone;
        const std::string answer_text = calls.Take(reasoning.Take(completion), is_final, WasCut(completion));
        answer.text += answer_text;
        answer.finish_reason = completion.finish_reason;
        answer.stop_reason = completion.stop_reason;
        is_shown = answer.finish_reason != FinishReason::kNone;
        on_progress();  // before the text is shown, so that the beginning of a shown answer is stored
        display.Feed(answer_text, is_shown);
        if (answer.finish_reason == FinishReason::kError) PrintError(output.error);
      }
    }
    reasoning.Update();
    key.AbortIfPressed();
    if (!is_shown) display.Tick();
  };
  RunUntilDone(engine, callbacks);
  answer.ends_thinking = key.has_aborted() && answer.finish_reason == FinishReason::kAbort && reasoning.is_thinking();
  if (!answer.ends_thinking) reasoning.End();
  if (reasoning.parts() != nullptr) answer.parts = *reasoning.parts();
  if (!is_shown) display.Feed("", true);
  PrintEngineWarning(engine);
  if (rejection) throw RequestError(*rejection);
}

}  // namespace vllm::app
