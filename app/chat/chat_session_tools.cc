// The functions of ChatSession for tools that the model calls.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "app/chat/answer_calls.h"
#include "app/chat/chat_session.h"
#include "app/chat/tool_prompt.h"
#include "app/chat/tool_use.h"
#include "app/model/tools_setting.h"
#include "app/output/run_until_done.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "app/tools/tool_loader.h"
#include "engine/config/escape.h"

namespace vllm::app {

std::vector<PollHook> ChatSession::ToolHooks() {
  std::vector<PollHook> hooks;
  hooks.push_back({SignalFd(), [] {
                     const int signal_number = TakeSignal();
                     if (signal_number == SIGINT) return false;
                     if (signal_number == SIGTSTP) {
                       RestoreTerminal();
                       SuspendProcess();
                       EnterChatModes();
                     } else if (signal_number != 0) {
                       throw Interrupted(signal_number);
                     }
                     return true;
                   }});
  if (const BackgroundWork* background = model_.background) {
    hooks.push_back({model_.engine->OutputFd(), [this, background] {
                       ServeBackground(*model_.engine, *background);
                       return true;
                     }});
  }
  return hooks;
}

void ChatSession::UseTools(std::unique_ptr<ToolUse> tools) {
  tools_ = std::move(tools);
  if (tools_ == nullptr) return;
  tools_->StartServers(ToolHooks());
  ShowTools();
}

void ChatSession::ShowTools() {
  tool_format_ = nullptr;
  if (tools_ == nullptr) return;
  const std::string definitions = DefinitionsJson(tools_->box().tools()->tools());
  model_.renderer->SetTools(definitions);
  prompt_builder_->SetToolPrompt("");
  if (definitions.empty()) return;
  tool_format_ = ModelToolCallFormat(settings_, *model_.renderer, *model_.tokenizer);
  if (!model_.renderer->UsesVariable("tools")) {
    if (model_.renderer->takes_system_message()) {
      prompt_builder_->SetToolPrompt(ToolPrompt(definitions));
      const bool is_auto = settings_.Text("tool-call-parser").value_or("auto") == "auto";
      if (tool_format_ == nullptr && is_auto) tool_format_ = FindToolCallFormat("hermes");
      PrintStatus("[the chat template does not show tools to the model, so the system message describes them]");
    } else {
      PrintWarning("--tools: the chat template (" + model_.renderer->source().origin +
                   ") does not show tools to the model");
    }
  }
  call_constraints_ = CallConstraints(tool_format_, model_.tokenizer);
  if (tool_format_ == nullptr) {
    PrintWarning(
        "the format of this model's tool calls is not known, so its calls are not run; --tool-call-parser "
        "names it");
  }
}

void ChatSession::RefreshTools() {
  if (tools_ != nullptr && tools_->Refresh(ToolHooks())) ShowTools();
}

SamplingParams ChatSession::WithConstrainedCalls(SamplingParams params) {
  if (tool_format_ == nullptr) return params;
  ToolRequest request;
  request.tools = CurrentTools();
  call_constraints_.Apply(request, params);
  for (const std::string& warning : call_constraints_.TakeWarnings()) PrintWarning(warning);
  return params;
}

std::shared_ptr<const ToolSet> ChatSession::CurrentTools() const {
  return tools_ == nullptr ? nullptr : tools_->box().tools();
}

ToolResult ChatSession::RunCall(const ToolCall& call) {
  PrintNote("[call] " + CallText(call.name, call.arguments));
  if (!call.error.empty()) return FailedResult("the call is not valid: " + call.error);
  if (tools_->box().tools()->Find(call.name) == nullptr) {
    return FailedResult("there is no tool called " + call.name);
  }
  const std::vector<PollHook> hooks = ToolHooks();
  switch (tools_->approval().Decide(call.name, hooks)) {
    case ToolApproval::Verdict::kRun:
      break;
    case ToolApproval::Verdict::kRefused:
      return FailedResult("the user did not allow this call");
    case ToolApproval::Verdict::kNobodyToAsk:
      PrintError("the call was refused, because there is no terminal to ask on",
                 "--approve-tools always runs tools without asking; use it only if each tool is harmless");
      return FailedResult("the call was not allowed");
    case ToolApproval::Verdict::kInterrupted: {
      ToolResult result = FailedResult("the user did not allow this call");
      result.was_interrupted = true;
      return result;
    }
  }
  return tools_->box().Run(call.name, call.arguments, hooks);
}

int64_t ChatSession::AddResult(const ToolCall& call, const ToolResult& result, int64_t parent) {
  StoredMessage message;
  message.parent = parent;
  message.role = ChatRole::kTool;
  if (!special_texts_) special_texts_.emplace(*model_.tokenizer);
  message.text = special_texts_->Break(result.text);
  message.tool_call_id = call.id.empty() ? "call" : call.id;
  message.tool_name = call.name;
  // No ids yet: the prompt is built when all results are there.
  message.ids_begin = static_cast<int64_t>(tree_.TokenIdsUpTo(parent).size());
  const int64_t id = tree_.Add(std::move(message));
  PrintStoreNotice();
  return id;
}

std::optional<int64_t> ChatSession::RunCalls(const StoredMessage& answer, bool is_over_limit) {
  const std::vector<ToolCall> calls = last_calls_.empty() ? CallsIn(answer.tool_calls) : last_calls_;
  int64_t parent = answer.id;
  bool is_stopped = is_over_limit;
  for (const ToolCall& call : calls) {
    ToolResult result;
    if (is_stopped) {
      result = FailedResult(is_over_limit ? "the call was not run: too many calls followed each other"
                                          : "the call was not run: the user stopped");
    } else {
      result = RunCall(call);
      is_stopped = result.was_interrupted;
      PrintDimStatus("[" + call.name + ": " +
                     (result.failed ? Escape(result.text.substr(0, result.text.find('\n')))
                                    : std::to_string(result.text.size()) + " bytes") +
                     "]");
    }
    parent = AddResult(call, result, parent);
  }
  if (!is_stopped) return parent;
  if (!is_over_limit) {
    last_answer_.finish_reason = FinishReason::kAbort;
    PrintStatus("[interrupted; the calls that were not run are recorded as failed]");
  }
  return std::nullopt;
}

bool ChatSession::BuildPromptOfResults(int64_t last_result) {
  RefreshTools();
  const StoredMessage* message = tree_.Find(last_result);
  const std::optional<BuiltPrompt> prompt = BuildPrompt(last_result, nullptr);
  if (!prompt) return false;
  PrintPromptNotes(*prompt);
  StoredMessage copy = *message;
  SetPrompt(*prompt, copy);
  tree_.Update(copy);
  PrintStoreNotice();
  return true;
}

void ChatSession::AnswerWithTools(StoredMessage answer, const SamplingParams& params,
                                  const std::vector<SamplingValue>& values) {
  int64_t id = RunRequest(std::move(answer), params);
  if (tools_ == nullptr) return;
  reached_chain_limit_ = false;
  for (int64_t num_rounds = 0;; ++num_rounds) {
    const StoredMessage* message = tree_.Find(id);
    if (message == nullptr || message->tool_calls.empty() || last_answer_.finish_reason != FinishReason::kStop) return;
    reached_chain_limit_ = tools_->chain_limit() > 0 && num_rounds >= tools_->chain_limit();
    const std::optional<int64_t> result = RunCalls(*message, reached_chain_limit_);
    if (reached_chain_limit_) {
      PrintError("the model still calls tools after " + std::to_string(num_rounds) + " rounds of calls",
                 "--chain-limit sets the number of rounds; 0: no limit");
    }
    if (!result) return;
    if (!BuildPromptOfResults(*result)) {
      last_answer_.finish_reason = FinishReason::kError;
      return;
    }
    SamplingParams next_params = params;
    next_params.seed = params_.seed;
    StoredMessage next = NewAnswer(*result, next_params, values);
    id = RunRequest(std::move(next), next_params);
  }
}

}  // namespace vllm::app
