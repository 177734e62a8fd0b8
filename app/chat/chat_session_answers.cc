// The functions of ChatSession for several answers to one question.
#include <algorithm>
#include <deque>
#include <utility>

#include "app/chat/answer_calls.h"
#include "app/chat/answer_group.h"
#include "app/chat/chat_session.h"
#include "app/chat/store_interval.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {

int64_t ChatSession::AnswerSeveralTimes(int64_t num_answers, const std::vector<SettingChange>& changes) {
  const StoredMessage& asked = CurrentQuestion();
  SamplingDefaults sampling = DefaultsOfAnotherAnswer(asked, changes);
  if (num_answers > 1 && sampling.params.greedy()) {
    throw ConfigError("with temperature 0, all answers are the same; for example, /answers 4 temperature=0.8");
  }
  const std::optional<int64_t> question = AskableQuestion(asked);
  if (!question) return 0;

  const ToolRequest tools = RequestedTools(Changed(changes), /*is_first_round=*/true);
  SamplingParams params = std::move(sampling.params);
  std::vector<SamplingParams> own_params;
  std::vector<StoredMessage> messages;
  for (int64_t i = 0; i < num_answers; ++i) {
    own_params.push_back(params);
    if (i > 0) *own_params.back().seed += static_cast<uint64_t>(i);  // as the engine does
    messages.push_back(NewAnswer(*question, own_params.back(), sampling.values));
    if (i == 0) params.seed = own_params.back().seed;
  }
  params.n = num_answers;
  if (tools.may_call() && call_constraints_.format() != nullptr) params.skip_special_tokens = false;
  const std::string request_id = NextRequestId();
  ++num_requests_;
  std::vector<int32_t> ids = tree_.TokenIdsUpTo(*question);
  std::vector<Answer> answers(messages.size());
  for (Answer& answer : answers) {
    answer.request_id = request_id;
    answer.stats.num_prompt_tokens = static_cast<int64_t>(ids.size());
    answer.stats.load_time = model_.load_time;
  }
  std::deque<ReasoningDisplay> reasonings;
  std::deque<AnswerCalls> calls;
  for (size_t i = 0; i < messages.size(); ++i) {
    reasonings.emplace_back(model_.reasoning_format, params.skip_special_tokens, ShowThinking::kHidden, "",
                            IsHarmony(tool_format_));
    reasonings.back().Begin(ids, {}, "");
    calls.emplace_back(tools.may_call() ? tool_format_ : nullptr, tools.tools,
                       request_id + "-" + std::to_string(*question) + "#" + std::to_string(i));
  }
  RequestOptions options;
  options.interactive = true;
  options.lora = lora_;
  const auto add_request = [&] {
    model_.engine->AddRequest(request_id, std::move(ids), WithConstrainedCalls(params, tools), options);
  };
  if (!TryToAdd(add_request)) return 0;

  const auto first_number = static_cast<int64_t>(tree_.ChildrenOf(*question).size()) + 1;
  // Stores what is new. Adds the answers in order, so that their numbers are their places among the versions.
  const auto store = [&](bool is_end) {
    for (size_t i = 0; i < messages.size(); ++i) {
      StoredMessage& message = messages[i];
      const Answer& answer = answers[i];
      if (answer.token_ids.empty() && !is_end) return;
      const bool has_ended = is_end || answer.finish_reason != FinishReason::kNone;
      const bool is_new =
          has_ended ? message.finish_reason.empty() : message.token_ids.size() < answer.token_ids.size();
      if (answer.token_ids.empty() || !is_new) continue;
      if (has_ended) {
        const bool is_cut = answer.finish_reason == FinishReason::kNone;
        message.finish_reason = ToString(is_cut ? FinishReason::kAbort : answer.finish_reason);
        message.finished_ms = NowMs();
        if (answer.finish_reason == FinishReason::kStop) message.tool_calls = CallsJson(calls[i].calls());
      }
      StoreAnswer(answer, reasonings[i], message);
    }
  };
  StoreInterval interval;
  const auto on_progress = [&] {
    if (interval.IsDue()) store(false);
  };
  const auto finish = [&] {
    store(true);
    last_answer_ = answers.front();
    const auto first =
        std::find_if(messages.begin(), messages.end(), [](const auto& message) { return message.id != 0; });
    if (first != messages.end()) tree_.MoveTo(first->id);
    PrintStoreNotice();
    return first != messages.end();
  };
  const std::unique_ptr<AnswerDisplay> display = MakeDisplay();
  try {
    StreamAnswers(model_, request_id, first_number, on_progress, reasonings, calls, *display, answers);
  } catch (...) {
    finish();
    model_.engine->AbortRequest(request_id);
    throw;
  }
  if (!finish()) return 0;
  const int64_t first = tree_.current_id();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].tool_calls.empty()) continue;
    PrintNote("[answer " + std::to_string(first_number + static_cast<int64_t>(i)) + "]");
    last_answer_ = answers[i];
    last_calls_ = calls[i].calls();
    AnswerCallsOf(messages[i].id, own_params[i], sampling.values);
    // The calls of the other answers run if the user chooses them and continues.
    if (last_answer_.finish_reason == FinishReason::kAbort) break;
  }
  tree_.MoveTo(tree_.NewestLeafBelow(first));
  PrintStoreNotice();
  return first_number;
}

std::vector<const StoredMessage*> ChatSession::Answers() const {
  std::vector<const StoredMessage*> answers;
  for (const int64_t id : tree_.ChildrenOf(CurrentQuestion().id)) answers.push_back(tree_.Find(id));
  return answers;
}

bool ChatSession::PickAnswer(int64_t number) {
  const std::vector<const StoredMessage*> answers = Answers();
  if (number < 1 || number > static_cast<int64_t>(answers.size())) return false;
  undone_.clear();
  next_parent_.reset();
  tree_.MoveTo(tree_.NewestLeafBelow(answers[static_cast<size_t>(number - 1)]->id));
  PrintStoreNotice();
  return true;
}

}  // namespace vllm::app
