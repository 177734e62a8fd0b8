#include "app/chat/chat_session.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "app/cli/parse_value.h"
#include "app/model/sampling_defaults.h"
#include "app/output/prompt_status.h"
#include "app/output/run_until_done.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {
namespace {

// Returns the number of tokens of the context that are reserved for the answer. The oldest turns are dropped if the
// prompt would leave fewer.
int64_t AnswerReserve(int64_t max_model_len) { return std::max<int64_t>(1, std::min<int64_t>(256, max_model_len / 4)); }

std::vector<int32_t> StopIds(const LoadedModel& model) {
  std::vector<int32_t> ids = model.engine->config().model.eos_token_ids;
  ids.insert(ids.end(), model.sampling_params.stop_token_ids.begin(), model.sampling_params.stop_token_ids.end());
  return ids;
}

}  // namespace

std::vector<std::string> SettableNames() {
  std::vector<std::string> names;
  for (const Flag& flag : FlagTable()) {
    if (flag.group == FlagGroup::kSampling && flag.belongs_to(Command::kChat)) names.emplace_back(flag.name);
  }
  return names;
}

std::string UnknownSettingText(const std::string& name) {
  const std::string near = NearestName(name, SettableNames());
  return "/set " + name + ": no such sampling setting" +
         (near.empty() ? "; /set lists the settings" : "; did you mean " + near + "?");
}

ChatSession::ChatSession(LoadedModel model, Settings settings)
    : model_(std::move(model)),
      settings_(std::move(settings)),
      params_(model_.sampling_params),
      conversation_(*model_.renderer, *model_.tokenizer, StopIds(model_)) {
  params_.output_kind = RequestOutputKind::kDelta;
  conversation_.Reset(settings_.Text("system").value_or(""));
}

void ChatSession::Clear() { conversation_.Reset(conversation_.system()); }

void ChatSession::SetSystem(const std::string& text) { conversation_.Reset(text); }

void ChatSession::Set(const std::string& name, const std::string& value) {
  const Flag* flag = FindFlag(name);
  if (flag == nullptr || flag->group != FlagGroup::kSampling || !flag->belongs_to(Command::kChat)) {
    throw ConfigError(UnknownSettingText(name));
  }
  Settings changed = settings_;
  changed.Set(*flag, {value}, SettingSource::kChat, "/set " + name);
  SamplingDefaults sampling = MakeSamplingDefaults(changed, ReadGenerationConfig(model_.location));
  SamplingParams checked = sampling.params;
  const VllmConfig& config = model_.engine->config();
  try {
    checked.Normalize(config.model.vocab_size, config.model.max_model_len, config.max_logprobs);
  } catch (const RequestError& error) {
    throw ConfigError(std::string("/set ") + error.what());
  }
  params_ = std::move(sampling.params);
  params_.output_kind = RequestOutputKind::kDelta;
  model_.sampling_values = std::move(sampling.values);
  settings_ = std::move(changed);
}

void ChatSession::SendUserMessage(const std::string& message) {
  const int64_t max_model_len = model_.engine->max_model_len();
  std::vector<int32_t> ids;
  try {
    ids = conversation_.BuildPrompt(message, max_model_len - AnswerReserve(max_model_len));
  } catch (const tokenizer::ChatTemplateError& error) {
    PrintError(error.what());
    return;
  } catch (const tokenizer::EncodingStopped&) {
    const int signal_number = TakeSignal();
    if (signal_number != SIGINT) throw Interrupted(signal_number);
    PrintNote("[interrupted: the message was not sent]");
    return;
  }
  if (ids.empty()) {
    PrintError("the message does not fit in the context of " + std::to_string(max_model_len) +
               " tokens, which also holds the system message and the answer");
    return;
  }
  if (conversation_.num_dropped_turns() > 0) {
    const int64_t num_dropped = conversation_.num_dropped_turns();
    PrintStatus(
        "[the context of " + std::to_string(max_model_len) + " tokens is full: " +
        (num_dropped == 1 ? "the oldest turn was" : "the oldest " + std::to_string(num_dropped) + " turns were") +
        " dropped]");
  }
  if (conversation_.was_rerendered() && !warned_about_rewriting_) {
    warned_about_rewriting_ = true;
    PrintStatus(
        "[this chat template rewrites earlier turns, so each message recomputes the conversation from the first "
        "change]");
  }
  const std::string request_id = "chat-" + std::to_string(num_requests_++);
  last_stats_ = RequestStats();
  last_stats_.num_prompt_tokens = static_cast<int64_t>(ids.size());
  last_stats_.load_time = model_.load_time;
  try {
    model_.engine->AddRequest(request_id, std::move(ids), params_);
  } catch (const RequestError& error) {
    conversation_.DiscardPending();
    PrintError(error.what());
    return;
  }
  if (Stream(request_id)) {
    conversation_.CommitReply(answer_ids_, answer_text_);
  } else {
    conversation_.DiscardPending();
  }
}

bool ChatSession::Stream(const std::string& request_id) {
  LLMEngine& engine = *model_.engine;
  std::optional<EchoOff> echo_off;
  echo_off.emplace();
  answer_ids_.clear();
  answer_text_.clear();
  SafeTextFilter filter;
  bool at_line_start = true;
  bool failed = false;
  FinishReason reason = FinishReason::kNone;
  PromptStatus status(engine);
  RunCallbacks callbacks;
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
      last_stats_.num_cached_tokens = output.num_cached_tokens;
      last_stats_.metrics = output.metrics;
      for (const CompletionOutput& completion : output.outputs) {
        answer_ids_.insert(answer_ids_.end(), completion.token_ids.begin(), completion.token_ids.end());
        answer_text_ += completion.text;
        reason = completion.finish_reason;
        SafeText text;
        filter.Feed(completion.text, text);
        if (reason != FinishReason::kNone) filter.Flush(text);
        if (!text.empty()) at_line_start = text.view().back() == '\n';
        StandardOutput().Write(text);
        if (reason == FinishReason::kError) {
          failed = true;
          if (!at_line_start) StandardOutput().Write(SafeText("\n"));
          at_line_start = true;
          PrintError(output.error);
        }
      }
    }
  };
  RunUntilDone(engine, callbacks);
  if (!at_line_start) StandardOutput().Write(SafeText("\n"));
  if (reason == FinishReason::kLength) {
    const bool context_full =
        !params_.max_tokens ||
        last_stats_.num_prompt_tokens + static_cast<int64_t>(answer_ids_.size()) >= engine.max_model_len();
    PrintStatus(context_full ? "[cut off: the context of " + std::to_string(engine.max_model_len()) +
                                   " tokens is full; /clear starts over]"
                             : "[cut off after " + std::to_string(*params_.max_tokens) + " tokens]");
  }
  return !failed;
}

}  // namespace vllm::app
