// StreamAnswers: waits for several answers to one question, which are generated at once, and prints them to standard
// output one after another. Keeps no state; main thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "app/chat/answer_stream.h"
#include "app/markdown/answer_display.h"
#include "app/model/load_model.h"
#include "app/output/reasoning_display.h"

namespace vllm::app {

// Waits for the request, which has been added with n = answers.size() and is the only one, and keeps `answers` up to
// date. `reasonings` and `calls`, one per answer, split their text. Shows the answers one after another, each under its
// number, counted from `first_number`: the first unfinished one is shown while it is generated, and the others wait for
// it. Calls `on_progress` after each step that added tokens. Ctrl-C aborts all answers and keeps the tokens so far.
// Prints an error if an answer fails. Throws like StreamAnswer.
void StreamAnswers(LoadedModel& model, const std::string& request_id, int64_t first_number,
                   const std::function<void()>& on_progress, std::deque<ReasoningDisplay>& reasonings,
                   std::deque<AnswerCalls>& calls, AnswerDisplay& display, std::vector<Answer>& answers);

}  // namespace vllm::app
