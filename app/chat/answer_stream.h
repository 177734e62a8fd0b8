// StreamAnswer: waits for one request and shows its answer while it is generated. Keeps no state; main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/answer_calls.h"
#include "app/markdown/answer_display.h"
#include "app/model/load_model.h"
#include "app/output/reasoning_display.h"
#include "app/output/request_stats.h"
#include "engine/request/request_output.h"

namespace vllm::app {

struct Answer {
  std::string request_id;                            // of the last request for it
  std::vector<int32_t> token_ids;                    // as sampled
  std::string text;                                  // without the thought
  std::optional<ReasoningParts> parts;               // text and thought, at the end; nullopt: the format is unknown
  FinishReason finish_reason = FinishReason::kNone;  // kNone while it is generated
  StopReason stop_reason;
  bool ends_thinking = false;  // the user wants the answer now; the caller continues after the end marker
  RequestStats stats;
};

// Waits for the request, which has been added and is the only one, and keeps `answer` up to date. `reasoning` splits
// its text and shows the thinking, `calls` takes the tool calls out of the rest, `display` shows the answer. Calls
// `on_progress` when tokens were added, before the answer's text is shown. Ctrl-C aborts the request and keeps the
// tokens so far. Ctrl-T, while the model thinks, does too and sets answer.ends_thinking. Prints an error if the request
// fails. Throws Interrupted on SIGTERM and SIGHUP, OutputClosed, EngineDeadError; `answer` then has the tokens so far.
// Throws RequestError if the request turns out to be invalid.
void StreamAnswer(LoadedModel& model, const std::string& request_id, const std::function<void()>& on_progress,
                  ReasoningDisplay& reasoning, AnswerCalls& calls, AnswerDisplay& display, Answer& answer);

}  // namespace vllm::app
