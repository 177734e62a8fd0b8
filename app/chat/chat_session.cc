#include "app/chat/chat_session.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/batch/input/batch_row.h"
#include "app/batch/input/sampling_fields.h"
#include "app/chat/answer_calls.h"
#include "app/chat/store_interval.h"
#include "app/chat/tool_use.h"
#include "app/cli/parse_value.h"
#include "app/model/model_digest.h"
#include "app/model/structured_outputs_setting.h"
#include "app/output/json_text.h"
#include "app/output/list_text.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "engine/frontend/input_processor.h"
#include "tokenizer/decode_stream.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {
namespace {

std::vector<int32_t> StopIds(const LoadedModel& model) {
  std::vector<int32_t> ids = model.engine->config().model.eos_token_ids;
  ids.insert(ids.end(), model.sampling_params.stop_token_ids.begin(), model.sampling_params.stop_token_ids.end());
  return ids;
}

// Returns the parameters of a request as one JSON object, with vLLM's names. Leaves out those without a value.
std::string ParamsJson(const std::vector<SamplingValue>& values, const SamplingParams& params) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const SamplingValue& value : values) {
    nlohmann::ordered_json parsed = nlohmann::ordered_json::parse(value.value);
    if (value.name == "generation-config" || parsed.is_null() || (parsed.is_array() && parsed.empty())) continue;
    if (IsStructuredOutputsFlag(value.name)) continue;
    std::string name = value.name;
    std::replace(name.begin(), name.end(), '-', '_');
    if (name == "logit_bias") {
      parsed = nlohmann::ordered_json::object();
      for (const auto& [id, bias] : params.logit_bias) parsed[std::to_string(id)] = bias;
    }
    // vLLM's name of the parameter, which the flag abbreviates.
    json[name == "thinking_budget" ? "thinking_token_budget" : name] = std::move(parsed);
  }
  if (params.structured_outputs) {
    json["structured_outputs"] = StructuredOutputsJson(*params.structured_outputs);
  }
  json["seed"] = params.seed.value_or(0);
  if (params.max_tokens) json["max_tokens"] = *params.max_tokens;
  return DumpJson(json);
}

// Returns the parameters in the JSON object that ParamsJson has made. Throws ConfigError.
SamplingParams ParamsOf(const StoredMessage& answer) {
  SamplingParams params;
  const auto json = nlohmann::ordered_json::parse(answer.sampling_params, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw ConfigError("the stored sampling parameters of this answer are not a JSON object");
  try {
    for (const auto& [name, value] : json.items()) SetSamplingField(name, value, params);
  } catch (const RowError& error) {
    throw ConfigError(std::string("the stored sampling parameters of this answer are invalid: ") + error.what());
  }
  params.output_kind = RequestOutputKind::kDelta;
  return params;
}

// Answers and results of tools follow a question.
bool IsReply(const StoredMessage& message) {
  return message.role == ChatRole::kAssistant || message.role == ChatRole::kTool;
}

class NoDisplay : public AnswerDisplay {
 public:
  void Feed(std::string_view /*untrusted*/, bool /*is_final*/) override {}
};

}  // namespace

ChatSession::ChatSession(LoadedModel& model, Settings settings, ChatStore* store, std::optional<PresetPrompt> preset)
    : model_(model),
      settings_(std::move(settings)),
      store_(store),
      tree_(store),
      own_system_(settings_.Text("system").value_or("")),
      system_(own_system_),
      preset_(std::move(preset)) {
  display_.markdown = settings_.Switch("markdown");
  display_.wrap_columns = static_cast<int>(std::clamp<int64_t>(settings_.Integer("wrap").value_or(0), 0, 10000));
  display_.stats_line = settings_.Switch("stats-line") && !settings_.Switch("stats");
  UseModel();
}

ChatSession::~ChatSession() {
  try {
    if (!tree_.StoreAll()) PrintWarning("the end of the conversation is not stored: " + tree_.last_error());
  } catch (const std::exception& error) {
    PrintWarning(std::string("the end of the conversation is not stored: ") + error.what());
  }
}

void ChatSession::UseModel() {
  params_ = model_.sampling_params;
  params_.output_kind = RequestOutputKind::kDelta;
  model_digest_ = ModelDigest(model_.location, *model_.renderer);
  prompt_builder_.emplace(*model_.renderer, *model_.tokenizer, StopIds(model_), model_digest_);
  warned_about_rewriting_ = false;
  special_texts_.reset();
  noted_tool_prompt_ = false;
  if (!offers_tools_) model_.renderer->SetTools("");
  ShowTools();
}

void ChatSession::Begin() {
  tree_.Begin();
  system_ = own_system_;
  undone_.clear();
  next_parent_.reset();
}

void ChatSession::BeginWithSystem(const std::string& text) {
  Begin();
  own_system_ = text;
  system_ = text;
}

ChatTree::OpenResult ChatSession::Open(int64_t chat) {
  const ChatTree::OpenResult result = tree_.Open(chat);
  if (result != ChatTree::OpenResult::kOpened) return result;
  undone_.clear();
  next_parent_.reset();
  const std::vector<const StoredMessage*> path = tree_.PathTo(tree_.current_id());
  system_ = !path.empty() && path[0]->role == ChatRole::kSystem ? path[0]->text : "";
  return result;
}

void ChatSession::Fork(const std::string& title) {
  std::vector<StoredMessage> copies;
  for (const StoredMessage* message : tree_.PathTo(tree_.current_id())) copies.push_back(*message);
  const std::string new_title = title.empty() ? tree_.title() : title;
  const std::string system = system_;
  Begin();
  system_ = system;
  if (!new_title.empty()) tree_.SetTitle(new_title);
  std::map<int64_t, int64_t> new_ids = {{0, 0}};
  for (StoredMessage& copy : copies) {
    const int64_t old_id = copy.id;
    copy.parent = new_ids[copy.parent];
    copy.context_first = new_ids[copy.context_first];
    new_ids[old_id] = tree_.Add(std::move(copy));
  }
  PrintStoreNotice();
}

bool ChatSession::Delete() {
  const bool is_erased = tree_.Delete();
  Begin();
  return is_erased;
}

int64_t ChatSession::ParentOfNextQuestion() const {
  if (next_parent_) return *next_parent_;
  const StoredMessage* current = tree_.current();
  // A question without an answer is replaced: the next one becomes its sibling.
  if (current != nullptr && current->role == ChatRole::kUser) return current->parent;
  return tree_.current_id();
}

int64_t ChatSession::Undo(int64_t num_turns) {
  int64_t done = 0;
  const int64_t before = tree_.current_id();
  int64_t id = before;
  while (done < num_turns) {
    const StoredMessage* message = tree_.Find(id);
    while (message != nullptr && IsReply(*message)) message = tree_.Find(message->parent);
    if (message == nullptr || message->role != ChatRole::kUser) break;
    id = message->parent;
    ++done;
  }
  if (done == 0) return 0;
  undone_.push_back(before);
  next_parent_.reset();
  tree_.MoveTo(id);
  PrintStoreNotice();
  return done;
}

bool ChatSession::Redo() {
  if (undone_.empty()) return false;
  tree_.MoveTo(undone_.back());
  undone_.pop_back();
  next_parent_.reset();
  PrintStoreNotice();
  return true;
}

std::optional<std::string> ChatSession::Edit(int64_t n) {
  const std::vector<const StoredMessage*> path = tree_.PathTo(tree_.current_id());
  for (auto message = path.rbegin(); message != path.rend(); ++message) {
    if ((*message)->role == ChatRole::kUser && --n == 0) return BeginEdit(**message);
  }
  return std::nullopt;
}

std::string ChatSession::BeginEdit(const StoredMessage& question) {
  next_parent_ = question.parent;
  const std::optional<std::string> input = preset_ ? preset_->InputOf(question.text) : std::nullopt;
  edits_whole_prompt_ = !input;
  return input.value_or(question.text);
}

bool ChatSession::CancelEdit() {
  const int64_t parent = ParentOfNextQuestion();
  next_parent_.reset();
  return ParentOfNextQuestion() != parent;
}

std::optional<std::string> ChatSession::GoTo(int64_t id) {
  const StoredMessage& message = *tree_.Find(id);
  undone_.clear();
  next_parent_.reset();
  tree_.MoveTo(id);
  PrintStoreNotice();
  return message.role == ChatRole::kUser ? std::optional(BeginEdit(message)) : std::nullopt;
}

bool ChatSession::MoveToSibling(int direction) {
  for (const StoredMessage* message = tree_.current(); message != nullptr; message = tree_.Find(message->parent)) {
    const std::vector<int64_t> siblings = tree_.ChildrenOf(message->parent);
    const auto at = std::find(siblings.begin(), siblings.end(), message->id) - siblings.begin() + direction;
    if (at >= 0 && at < static_cast<std::ptrdiff_t>(siblings.size())) {
      undone_.clear();
      next_parent_.reset();
      tree_.MoveTo(tree_.NewestLeafBelow(siblings[static_cast<size_t>(at)]));
      PrintStoreNotice();
      return true;
    }
    if (message->role == ChatRole::kUser) break;
  }
  return false;
}

int64_t ChatSession::num_turns() const {
  const std::vector<const StoredMessage*> path = tree_.PathTo(tree_.current_id());
  return std::count_if(path.begin(), path.end(),
                       [](const StoredMessage* message) { return message->role == ChatRole::kUser; });
}

void ChatSession::SendUserMessage(const std::string& message) {
  was_answered_ = false;
  const std::string prompt = WithPreset(message);
  const bool is_first = tree_.empty();
  const std::optional<int64_t> question = AddQuestion(prompt);
  if (!question) return;
  // Otherwise all conversations of a preset would have the beginning of its prompt as their title.
  if (is_first && prompt != message) SetTitle(FirstLine(message, 80));
  AnswerQuestion(*question, params_, model_.sampling_values, RequestedTools(settings_, true));
}

std::optional<int64_t> ChatSession::AddQuestion(const std::string& message) {
  RefreshTools();
  int64_t parent = AddMissingResults(ParentOfNextQuestion());
  const std::optional<BuiltPrompt> prompt = BuildPrompt(parent, &message);
  if (!prompt) return std::nullopt;
  next_parent_.reset();
  undone_.clear();
  PrintPromptNotes(*prompt);
  if (parent == 0 && !system_.empty()) {
    StoredMessage system;
    system.role = ChatRole::kSystem;
    system.text = system_;
    parent = tree_.Add(std::move(system));
  }
  StoredMessage question;
  question.parent = parent;
  question.role = ChatRole::kUser;
  question.text = message;
  SetPrompt(*prompt, question);
  const int64_t id = tree_.Add(std::move(question));
  tree_.SetDraft("");
  PrintStoreNotice();
  return id;
}

const StoredMessage& ChatSession::CurrentQuestion() const {
  const StoredMessage* question = tree_.current();
  while (question != nullptr && IsReply(*question)) question = tree_.Find(question->parent);
  if (question == nullptr || question->role != ChatRole::kUser) throw ConfigError("there is no question to answer");
  return *question;
}

SamplingDefaults ChatSession::DefaultsOfAnotherAnswer(const StoredMessage& question,
                                                      const std::vector<SettingChange>& changes) const {
  SamplingDefaults sampling = CheckedDefaults(Changed(changes));
  const bool sets_seed = std::any_of(changes.begin(), changes.end(), [](const auto& c) { return c.first == "seed"; });
  // With the seed of the first answer the answer would be the same. The others get the seeds of a request with n > 1.
  if (sampling.params.seed && !sets_seed) *sampling.params.seed += tree_.ChildrenOf(question.id).size();
  return sampling;
}

std::optional<int64_t> ChatSession::AskableQuestion(const StoredMessage& question) {
  next_parent_.reset();
  undone_.clear();
  const int64_t max_model_len = model_.engine->max_model_len();
  const auto num_tokens_of_prompt = static_cast<int64_t>(tree_.TokenIdsUpTo(question.id).size());
  if (!question.token_ids.empty() && question.model_digest == model_digest_ &&
      question.template_variables == model_.renderer->variables() &&
      num_tokens_of_prompt <= max_model_len - AnswerReserve()) {
    return question.id;
  }
  const std::string text = question.text;
  next_parent_ = question.parent;
  const std::optional<int64_t> sibling = AddQuestion(text);
  next_parent_.reset();  // also if the question was not asked, because it does not fit
  return sibling;
}

void ChatSession::Regenerate(const std::vector<SettingChange>& changes) {
  const StoredMessage& question = CurrentQuestion();
  SamplingDefaults sampling = DefaultsOfAnotherAnswer(question, changes);
  const std::optional<int64_t> id = AskableQuestion(question);
  if (!id) return;
  AnswerQuestion(*id, std::move(sampling.params), sampling.values, RequestedTools(Changed(changes), true));
}

StoredMessage ChatSession::NewAnswer(int64_t question, SamplingParams& params,
                                     const std::vector<SamplingValue>& values) const {
  // The engine would derive the same seed. It is set here so that it can be stored.
  if (!params.seed) params.seed = DeriveSeed(model_.engine->config().seed, NextRequestId());
  StoredMessage answer;
  answer.parent = question;
  answer.role = ChatRole::kAssistant;
  answer.ids_begin = static_cast<int64_t>(tree_.TokenIdsUpTo(question).size());
  answer.model = model_.location.short_name();
  answer.model_digest = model_digest_;
  answer.sampling_params = ParamsJson(values, params);
  return answer;
}

void ChatSession::AnswerQuestion(int64_t question, SamplingParams params, const std::vector<SamplingValue>& values,
                                 const ToolRequest& tools) {
  StoredMessage answer = NewAnswer(question, params, values);
  AnswerWithTools(std::move(answer), params, values, tools);
}

void ChatSession::Continue() {
  if (ContinueCalls()) return;
  const StoredMessage* current = tree_.current();
  if (current == nullptr || current->role != ChatRole::kAssistant || current->finish_reason == "stop") {
    throw ConfigError("there is no answer that was cut off");
  }
  if (current->model_digest != model_digest_ || current->token_ids.empty()) {
    throw ConfigError("the answer is from another model or chat template; /regen answers the question again");
  }
  StoredMessage answer = *current;
  SamplingParams params = ParamsOf(answer);
  if (answer.finish_reason == "length" && params.max_tokens) {
    // As many tokens again as a new answer may have.
    const int64_t more = params_.max_tokens.value_or(*params.max_tokens);
    params.max_tokens = static_cast<int64_t>(answer.token_ids.size()) + std::min(more, model_.engine->max_model_len());
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(answer.sampling_params);
    json["max_tokens"] = *params.max_tokens;
    answer.sampling_params = DumpJson(json);
  }
  next_parent_.reset();
  undone_.clear();
  // Later messages continue this answer, so it must stay unchanged.
  if (!tree_.ChildrenOf(answer.id).empty()) answer.id = 0;
  const StoredMessage* parent = tree_.Find(answer.parent);
  const bool is_first_round = parent != nullptr && parent->role == ChatRole::kUser;
  AnswerWithTools(std::move(answer), params, model_.sampling_values, RequestedTools(settings_, is_first_round));
}

bool ChatSession::TryToAdd(const std::function<void()>& add_request) {
  try {
    add_request();
    return true;
  } catch (const RequestError& error) {
    PrintError(error.what());
  } catch (const tokenizer::EncodingStopped&) {  // while bad_words were tokenized
    TakeInterrupt();
    PrintNote("[interrupted: the question was not answered]");
  }
  return false;
}

void ChatSession::StoreAnswer(const Answer& answer, const ReasoningDisplay& reasoning, StoredMessage& message) {
  message.text = answer.text;
  message.token_ids = answer.token_ids;
  message.thinking = reasoning.thinking();
  message.num_thinking_ids = reasoning.num_thinking_ids();
  message.thinking_ms = reasoning.time().count();
  if (message.id == 0) {
    message.id = tree_.Add(message);
  } else {
    tree_.Update(message);
  }
}

int64_t ChatSession::RunRequest(StoredMessage message, const SamplingParams& given_params, const ToolRequest& tools) {
  SamplingParams params = given_params;
  // Special tokens begin and end the calls of many models.
  if (tools.may_call() && call_constraints_.format() != nullptr) params.skip_special_tokens = false;
  const int64_t max_model_len = model_.engine->max_model_len();
  const std::vector<int32_t> ids = tree_.TokenIdsUpTo(message.parent);
  const auto num_prompt_tokens = static_cast<int64_t>(ids.size());
  Answer answer;
  answer.token_ids = message.token_ids;
  AnswerCalls calls(tools.may_call() ? tool_format_ : nullptr, tools.tools,
                    NextRequestId() + "-" + std::to_string(message.parent));
  last_calls_.clear();
  ReasoningDisplay reasoning(model_.reasoning_format, params.skip_special_tokens, show_thinking(),
                             " (Ctrl-T answers now)", IsHarmony(tool_format_));
  reasoning.AddTime(std::chrono::milliseconds(message.thinking_ms));
  const auto add_request = [&] {
    std::string prior_text;
    if (!answer.token_ids.empty()) {
      // Without the U+FFFD that ended the text if the answer was cut inside a character.
      tokenizer::DecodeStream stream(*model_.tokenizer, params.skip_special_tokens);
      stream.Prime(ids);
      for (const int32_t id : answer.token_ids) stream.Feed(id, prior_text);
    }
    reasoning.Begin(ids, answer.token_ids, prior_text);
    answer.text = calls.Restart(reasoning.text());
    RequestOptions options;
    options.prior_output_token_ids = answer.token_ids;
    options.interactive = true;
    options.lora = lora_;
    answer.request_id = NextRequestId();
    ++num_requests_;
    // The beginning of a text that is continued may have been written without these tools.
    model_.engine->AddRequest(answer.request_id, ids,
                              answer.text.empty() ? WithConstrainedCalls(params, tools) : params, options);
  };
  answer.stats.num_prompt_tokens = static_cast<int64_t>(ids.size() + answer.token_ids.size());
  answer.stats.load_time = model_.load_time;
  last_answer_ = answer;
  const size_t num_prior = answer.token_ids.size();
  if (!TryToAdd(add_request)) return 0;
  const auto store = [&] {
    if (answer.token_ids.size() == num_prior && answer.finish_reason == FinishReason::kNone) return;
    if (answer.token_ids.empty()) return;
    StoreAnswer(answer, reasoning, message);
    was_answered_ = true;
  };
  StoreInterval interval;
  const auto on_progress = [&] {
    if (!interval.IsDue()) return;
    message.finish_reason.clear();
    store();
  };
  const auto finish = [&](FinishReason reason) {
    answer.finish_reason = reason;
    message.finish_reason = ToString(reason);
    message.finished_ms = NowMs();
    if (reason == FinishReason::kStop) {
      last_calls_ = calls.calls();
      message.tool_calls = CallsJson(last_calls_);
    }
    store();
    if (calls.is_on() && answer.parts) answer.parts->text = answer.text;
    last_answer_ = answer;
  };
  const std::unique_ptr<AnswerDisplay> display = MakeDisplay();
  display->Begin(answer.text);
  try {
    StreamAnswer(model_, answer.request_id, on_progress, reasoning, calls, *display, answer);
    while (answer.ends_thinking) {
      const std::vector<int32_t> end_ids = reasoning.RestOfEndMarker();
      answer.token_ids.insert(answer.token_ids.end(), end_ids.begin(), end_ids.end());
      answer.ends_thinking = false;
      add_request();
      display->Begin(answer.text);
      StreamAnswer(model_, answer.request_id, on_progress, reasoning, calls, *display, answer);
    }
  } catch (const RequestError& error) {  // no token is left for an answer, or its grammar is rejected
    PrintError(error.what());
  } catch (...) {
    // The answer may have ended before the exception: writing its last part to standard output can fail.
    finish(answer.finish_reason == FinishReason::kNone ? FinishReason::kAbort : answer.finish_reason);
    PrintStoreNotice();
    model_.engine->AbortRequest(answer.request_id);
    throw;
  }
  finish(answer.finish_reason);
  PrintStoreNotice();
  if (answer.finish_reason != FinishReason::kStop) {
    for (const ToolCall& call : calls.calls()) {
      PrintNote((call.is_cut ? "[incomplete call] " : "[call not run] ") + CallText(call.name, call.arguments));
    }
  }
  if (answer.finish_reason == FinishReason::kAbort && !answer.token_ids.empty()) {
    PrintStatus("[interrupted" + ContinueHint() + "]");
  }
  if (answer.finish_reason == FinishReason::kLength) {
    const bool is_context_full =
        !params.max_tokens || num_prompt_tokens + static_cast<int64_t>(answer.token_ids.size()) >= max_model_len;
    PrintStatus(is_context_full
                    ? "[cut off: the context of " + std::to_string(max_model_len) + " tokens is full; /new starts over]"
                    : "[cut off after " + std::to_string(*params.max_tokens) + " tokens" + ContinueHint() + "]");
  }
  if (answer.finish_reason == FinishReason::kStop && !calls.error().empty())
    PrintNote("[a part of the answer looks like a tool call, but is none: " + calls.error() + "]");
  PrintStatsLine();
  return message.id;
}

void ChatSession::PrintStatsLine() const {
  const RequestStats& stats = last_answer_.stats;
  const bool shows_answers = display_.answers && StandardOutput().IsTerminal();
  if (!display_.stats_line || !shows_answers || stats.metrics.num_generation_tokens == 0) return;
  PrintDimStatus(ShortStatsText(stats, num_tokens(), model_.engine->max_model_len()));
}

std::unique_ptr<AnswerDisplay> ChatSession::MakeDisplay() const {
  if (!display_.answers) return std::make_unique<NoDisplay>();
  return MakeAnswerDisplay(StandardOutput(), display_.markdown, display_.wrap_columns);
}

std::string ChatSession::ContinueHint() const {
  if (settings_.command != Command::kRun) return "; /continue resumes it";
  return store_ == nullptr ? "" : "; /continue in vllmcli chat -c resumes it";
}

void ChatSession::SetTitle(const std::string& title) {
  tree_.SetTitle(title);
  PrintStoreNotice();
}

void ChatSession::SetDraft(const std::string& draft) {
  tree_.SetDraft(draft);
  PrintStoreNotice();
}

void ChatSession::PrintStoreNotice() {
  const std::string notice = tree_.TakeNotice();
  if (!notice.empty()) PrintWarning(notice);
}

}  // namespace vllm::app
