#include "app/chat/answer_stream.h"

#include <signal.h>

#include <optional>

#include "app/output/prompt_status.h"
#include "app/output/run_until_done.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"

namespace vllm::app {

void StreamAnswer(LoadedModel& model, const std::string& request_id, const std::function<void()>& on_progress,
                  Answer& answer) {
  LLMEngine& engine = *model.engine;
  std::optional<EchoOff> echo_off;
  echo_off.emplace();
  SafeTextFilter filter;
  bool at_line_start = true;
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
    for (const RequestOutput& output : outputs) {
      answer.stats.num_cached_tokens = output.num_cached_tokens;
      answer.stats.metrics = output.metrics;
      for (const CompletionOutput& completion : output.outputs) {
        answer.token_ids.insert(answer.token_ids.end(), completion.token_ids.begin(), completion.token_ids.end());
        answer.text += completion.text;
        answer.finish_reason = completion.finish_reason;
        SafeText text;
        filter.Feed(completion.text, text);
        if (answer.finish_reason != FinishReason::kNone) filter.Flush(text);
        if (!text.empty()) at_line_start = text.view().back() == '\n';
        StandardOutput().Write(text);
        if (answer.finish_reason == FinishReason::kError) {
          if (!at_line_start) StandardOutput().Write(SafeText("\n"));
          at_line_start = true;
          PrintError(output.error);
        }
      }
    }
    if (!outputs.empty()) on_progress();
  };
  RunUntilDone(engine, callbacks);
  if (!at_line_start) StandardOutput().Write(SafeText("\n"));
  PrintEngineWarning(engine);
}

}  // namespace vllm::app
