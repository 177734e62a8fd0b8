// The functions of ChatSession for tools that the model calls.
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "app/chat/answer_calls.h"
#include "app/chat/chat_session.h"
#include "app/chat/tool_prompt.h"
#include "app/chat/tool_use.h"
#include "app/model/tools_setting.h"
#include "app/output/list_text.h"
#include "app/output/run_until_done.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "app/tools/tool_loader.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// Returns the beginning of a result on one line, and how long the result is if there is more.
std::string ShownResult(const std::string& text) {
  constexpr size_t kMaxCharacters = 160;
  const std::string line = OneLine(text);
  if (line.empty()) return "(empty)";
  const std::string shown = FirstLine(line, kMaxCharacters);
  return shown == line ? shown : shown + " (" + GroupedText(static_cast<int64_t>(text.size())) + " bytes)";
}

// Says once that a tool still runs, after two seconds, because nothing else is shown meanwhile.
class SlowToolNote {
 public:
  explicit SlowToolNote(std::string name) : name_(std::move(name)) {
    if (isatty(STDERR_FILENO) == 0) return;
    fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    const itimerspec two_seconds = {{0, 0}, {2, 0}};
    if (fd_ >= 0) timerfd_settime(fd_, 0, &two_seconds, nullptr);
  }
  ~SlowToolNote() {
    if (fd_ >= 0) close(fd_);
  }
  SlowToolNote(const SlowToolNote&) = delete;
  SlowToolNote& operator=(const SlowToolNote&) = delete;

  void AddTo(std::vector<PollHook>& hooks) const {
    if (fd_ < 0) return;
    hooks.push_back({fd_, [this] {
                       uint64_t num_expirations = 0;
                       if (read(fd_, &num_expirations, sizeof num_expirations) > 0) {
                         PrintDimStatus("[" + name_ + " is still running; Ctrl-C stops it]");
                       }
                       return true;
                     }});
  }

 private:
  std::string name_;
  int fd_ = -1;
};

}  // namespace

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
  offered_tools_ = nullptr;
  call_constraints_ = CallConstraints();
  prompt_builder_->SetToolPrompt("");
  if (tools_ == nullptr) {
    // Definitions alone: nothing runs their calls, which are part of the answer.
    offered_tools_ = ToolsOfVariables(model_.renderer->variables());
    if (offered_tools_ == nullptr) return;
    const ToolCallFormat* format = ModelToolCallFormat(settings_, *model_.renderer, *model_.tokenizer);
    call_constraints_ = CallConstraints(format, model_.tokenizer);
    return;
  }
  const std::string definitions = offers_tools_ ? DefinitionsJson(tools_->box().tools()->tools()) : "";
  model_.renderer->SetTools(definitions);
  if (definitions.empty()) return;
  offered_tools_ = tools_->box().tools();
  tool_format_ = ModelToolCallFormat(settings_, *model_.renderer, *model_.tokenizer);
  if (!model_.renderer->UsesVariable("tools")) {
    if (model_.renderer->takes_system_message()) {
      prompt_builder_->SetToolPrompt(ToolPrompt(definitions));
      const bool is_auto = settings_.Text("tool-call-parser").value_or("auto") == "auto";
      if (tool_format_ == nullptr && is_auto) tool_format_ = FindToolCallFormat("hermes");
      if (!std::exchange(noted_tool_prompt_, true)) {
        PrintStatus("[the chat template does not show tools to the model, so the system message describes them]");
      }
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

void ChatSession::OfferTools(bool offers) {
  if (tools_ == nullptr) model_.renderer->SetTools(offers ? ReadTools(settings_, *model_.renderer) : "");
  offers_tools_ = offers;
  ShowTools();
}

ToolRequest ChatSession::RequestedTools(const Settings& settings, bool is_first_round) const {
  ToolRequest request;
  request.tools = offered_tools_;
  if (is_first_round && offered_tools_ != nullptr) {
    SetToolChoice(settings.Text("tool-choice").value_or("auto"), request);
  }
  return request;
}

void ChatSession::CheckToolChoice(const Settings& settings) const {
  if (!offers_tools_) return;
  ToolRequest request;
  request.tools = offered_tools_;
  SetToolChoice(settings.Text("tool-choice").value_or("auto"), request);
  if (const std::string problem = ToolChoiceProblem(request); !problem.empty()) {
    throw ConfigError("--tool-choice: " + problem, "--tools and --mcp name tools");
  }
}

SamplingParams ChatSession::WithConstrainedCalls(SamplingParams params, const ToolRequest& tools) {
  if (const std::string problem = ToolChoiceProblem(tools); !problem.empty()) {
    throw RequestError("tool_choice: " + problem);
  }
  call_constraints_.Apply(tools, params);
  for (const std::string& warning : call_constraints_.TakeWarnings()) PrintWarning(warning);
  return params;
}

ToolResult ChatSession::RunCall(const ToolCall& call) {
  PrintNote("[call] " + CallText(call.name, call.arguments));
  if (!call.error.empty()) return FailedResult("the call is not valid: " + call.error);
  if (tools_->box().tools()->Find(call.name) == nullptr) {
    return FailedResult("there is no tool called " + call.name);
  }
  std::vector<PollHook> hooks = ToolHooks();
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
  const SlowToolNote note(call.name);
  note.AddTo(hooks);
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

std::optional<int64_t> ChatSession::RunCalls(const std::vector<ToolCall>& calls, int64_t parent, bool is_over_limit) {
  bool is_stopped = is_over_limit;
  for (const ToolCall& call : calls) {
    ToolResult result;
    if (is_stopped) {
      result = FailedResult(is_over_limit ? "the call was not run: too many calls followed each other"
                                          : "the call was not run: the user stopped");
    } else {
      result = RunCall(call);
      is_stopped = result.was_interrupted;
      PrintDimStatus("[result] " + ShownResult(result.text));
    }
    parent = AddResult(call, result, parent);
  }
  if (!is_stopped) return parent;
  if (!is_over_limit) {
    last_answer_.finish_reason = FinishReason::kAbort;
    PrintStatus("[interrupted; the calls that were not run count as failed" + ContinueHint() + "]");
  }
  return std::nullopt;
}

bool ChatSession::BuildPromptOfResults(int64_t last_result) {
  RefreshTools();
  const StoredMessage* message = tree_.Find(last_result);
  if (!tree_.ChildrenOf(last_result).empty()) {
    // The answers to these results continue their ids, so they must stay unchanged.
    if (message->model_digest == model_digest_ && message->template_variables == model_.renderer->variables()) {
      return true;
    }
    PrintError("the results have been answered by another model or with other tools",
               "/regen answers the question again");
    return false;
  }
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
                                  const std::vector<SamplingValue>& values, const ToolRequest& tools) {
  AnswerCallsOf(RunRequest(std::move(answer), params, tools), params, values);
}

int64_t ChatSession::AnswerResults(int64_t last_result, const SamplingParams& params,
                                   const std::vector<SamplingValue>& values) {
  if (!BuildPromptOfResults(last_result)) {
    last_answer_.finish_reason = FinishReason::kError;
    return 0;
  }
  SamplingParams next_params = params;
  next_params.seed = params_.seed;
  if (next_params.seed) *next_params.seed += tree_.ChildrenOf(last_result).size();
  StoredMessage next = NewAnswer(last_result, next_params, values);
  return RunRequest(std::move(next), next_params, RequestedTools(settings_, /*is_first_round=*/false));
}

void ChatSession::AnswerCallsOf(int64_t answer, const SamplingParams& params,
                                const std::vector<SamplingValue>& values) {
  if (tools_ == nullptr) return;
  reached_chain_limit_ = false;
  for (int64_t num_rounds = 0;; ++num_rounds) {
    const StoredMessage* message = tree_.Find(answer);
    if (message == nullptr || message->tool_calls.empty() || last_answer_.finish_reason != FinishReason::kStop) return;
    reached_chain_limit_ = tools_->chain_limit() > 0 && num_rounds >= tools_->chain_limit();
    const std::vector<ToolCall> calls = last_calls_.empty() ? CallsIn(message->tool_calls) : last_calls_;
    const std::optional<int64_t> result = RunCalls(calls, answer, reached_chain_limit_);
    if (reached_chain_limit_) {
      PrintError("the model still calls tools after " + std::to_string(num_rounds) + " rounds of calls",
                 "--chain-limit sets the number of rounds; 0: no limit");
    }
    if (!result) return;
    answer = AnswerResults(*result, params, values);
  }
}

std::optional<ChatSession::OpenCalls> ChatSession::OpenCallsAt(int64_t id) const {
  const StoredMessage* answer = tree_.Find(id);
  size_t num_results = 0;
  for (; answer != nullptr && answer->role == ChatRole::kTool; answer = tree_.Find(answer->parent)) ++num_results;
  if (answer == nullptr || answer->role != ChatRole::kAssistant || answer->tool_calls.empty()) return std::nullopt;
  OpenCalls open;
  open.last = id;
  // The results that are stored already, so that no call runs twice.
  while (true) {
    const std::vector<int64_t> children = tree_.ChildrenOf(open.last);
    const auto is_result = [&](int64_t child) { return tree_.Find(child)->role == ChatRole::kTool; };
    const auto result = std::find_if(children.rbegin(), children.rend(), is_result);
    if (result == children.rend()) break;
    open.last = *result;
    ++num_results;
  }
  open.calls = CallsIn(answer->tool_calls);
  open.calls.erase(open.calls.begin(),
                   open.calls.begin() + static_cast<std::ptrdiff_t>(std::min(num_results, open.calls.size())));
  return open;
}

std::optional<size_t> ChatSession::NumOpenCalls() const {
  const std::optional<OpenCalls> open = OpenCallsAt(tree_.current_id());
  if (!open || !tree_.ChildrenOf(open->last).empty()) return std::nullopt;
  return open->calls.size();
}

bool ChatSession::ContinueCalls() {
  const std::optional<OpenCalls> open = OpenCallsAt(tree_.current_id());
  if (!open) return false;
  if (!open->calls.empty() && tools_ == nullptr) {
    throw ConfigError("the answer calls tools, but this chat has none", "--tools and --mcp name tools");
  }
  next_parent_.reset();
  undone_.clear();
  std::optional<int64_t> last = open->last;
  if (!open->calls.empty()) {
    PrintStatus("[calls without a result run now; the first of them may have run before]");
    last = RunCalls(open->calls, open->last, /*is_over_limit=*/false);
  }
  if (last) AnswerCallsOf(AnswerResults(*last, params_, model_.sampling_values), params_, model_.sampling_values);
  return true;
}

int64_t ChatSession::AddMissingResults(int64_t id) {
  const std::optional<OpenCalls> open = OpenCallsAt(id);
  if (!open) return id;
  id = open->last;
  for (const ToolCall& call : open->calls) {
    id = AddResult(call, FailedResult("the call was not run: the user asked something else"), id);
  }
  return id;
}

}  // namespace vllm::app
