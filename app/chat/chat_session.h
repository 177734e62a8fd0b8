// ChatSession: a loaded model, a conversation with it and the sampling settings. Owned by the chat command; main
// thread.
//
// The conversation is a tree of messages (ChatTree). A question is stored before it is answered; its answer is stored
// at its first token, then every two seconds, and at its end.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/batch/tools/call_constraints.h"
#include "app/chat/answer_stream.h"
#include "app/chat/prompt_builder.h"
#include "app/chat/special_texts.h"
#include "app/chats/chat_tree.h"
#include "app/cli/settings.h"
#include "app/model/load_model.h"
#include "app/output/thinking_display.h"
#include "app/presets/preset_prompt.h"
#include "app/tools/poll_hook.h"
#include "app/tools/tool_source.h"
#include "engine/tool_calls/syntax/tool_call_format.h"
#include "engine/tool_calls/syntax/tool_set.h"
#include "engine/tool_calls/tool_call_event.h"

namespace vllm::app {

class ToolUse;

// Returns true if /set can change the flag: a sampling flag of the chat, or context-shift.
bool IsSettable(const Flag& flag);
// Returns the names of the settings that /set can change.
std::vector<std::string> SettableNames();
// Returns the error message for a name that /set does not accept.
std::string UnknownSettingText(const std::string& name);

// A setting and its value as text, such as {"temperature", "0.2"}.
using SettingChange = std::pair<std::string, std::string>;

// The settings of /set that change how answers are shown; their values are on and off.
inline constexpr std::array<std::string_view, 2> kDisplaySettings = {"markdown", "stats"};

// How the chat shows answers.
struct ChatDisplay {
  bool answers = true;  // false: neither answers nor thoughts are shown
  bool markdown = true;
  int wrap_columns = 0;    // 0: the width of the terminal
  bool stats_line = true;  // after each answer, on a terminal
};

class ChatSession {
 public:
  // Borrows `model`, which SwitchModel replaces, and `store`; null: conversations are not stored. `preset` is the one
  // that `settings` already contain. REQUIRES: `model` has a renderer and a tokenizer.
  ChatSession(LoadedModel& model, Settings settings, ChatStore* store,
              std::optional<PresetPrompt> preset = std::nullopt);
  // Warns if the end of the conversation cannot be stored.
  ~ChatSession();
  ChatSession(const ChatSession&) = delete;
  ChatSession& operator=(const ChatSession&) = delete;

  // From now on, runs the tools that an answer calls, and answers again with their results, until an answer calls none
  // or the chain limit is reached. Starts MCP servers. Null: calls are part of the answer. Throws Interrupted.
  void UseTools(std::unique_ptr<ToolUse> tools);
  // Returns true if the chain limit has ended the last answer.
  bool reached_chain_limit() const { return reached_chain_limit_; }
  // Throws ConfigError if --tool-choice demands a call that no tool can answer.
  void CheckToolChoice() const { CheckToolChoice(settings_); }
  // Shows the tools to the model, which they do from the start, or hides them, from the next message on. Throws
  // ConfigError if --tools cannot be read again.
  void OfferTools(bool offers);
  bool offers_tools() const { return offers_tools_; }
  // Returns the tools that can run, or null.
  ToolUse* tools() const { return tools_.get(); }
  // Returns the tools that the model sees, or null if there are none.
  const std::shared_ptr<const ToolSet>& offered_tools() const { return offered_tools_; }

  // Sends the message, through the preset's prompt if that takes it, and streams the answer to standard output. Ctrl-C
  // ends the answer and keeps the part that was generated; while the message is tokenized, Ctrl-C discards the message.
  // Prints an error if the message is invalid or does not fit in the context, or if the request fails. Throws
  // Interrupted on SIGTERM and SIGHUP, OutputClosed, ResourceError, EngineDeadError.
  void SendUserMessage(const std::string& message);
  // Answers the current question again, as another branch, with `changes` of the settings for this answer only. Throws
  // ConfigError, and like SendUserMessage.
  void Regenerate(const std::vector<SettingChange>& changes);

  // Generates `num_answers` more answers to the current question at once, as branches. Their seeds are consecutive; if
  // the settings have a seed, they are those that as many calls of Regenerate would use. Then runs the tools that the
  // first of them calls, and answers their results; then those of the second, and so on. Returns the number of the
  // first answer among the versions of the answer, or 0 if there are none. Its branch becomes the current one. Throws
  // like Regenerate.
  int64_t AnswerSeveralTimes(int64_t num_answers, const std::vector<SettingChange>& changes);
  static constexpr int64_t kMaxAnswersAtOnce = 16;

  // Returns the answers to the current question, oldest first, and makes the one with this number (1: the oldest) the
  // current one. Returns false if there is none.
  std::vector<const StoredMessage*> Answers() const;
  bool PickAnswer(int64_t number);

  // Continues an answer that was cut off by Ctrl-C or its length, with the parameters that it had, after its last
  // token. The tokens are those of an uninterrupted answer. If the current answer calls tools, or the current message
  // is one of their results, runs the calls that have no result yet, and answers the results. Throws ConfigError if
  // there is nothing to continue.
  void Continue();
  // Returns the number of calls without a result, if the current message is an answer that calls tools or one of their
  // results and no answer follows; else nullopt.
  std::optional<size_t> NumOpenCalls() const;

  // Begins a new conversation with the system message of the settings or of the last BeginWithSystem. The old one stays
  // stored. Throws StoreError if its end cannot be stored (ChatTree::Begin).
  void Begin();
  // Begins a new conversation with another system message, which may be empty.
  void BeginWithSystem(const std::string& text);
  // Continues a stored conversation. Throws StoreError.
  ChatTree::OpenResult Open(int64_t chat);
  // Copies the messages up to the current one to a new conversation and continues there. An empty `title` means that of
  // the original.
  void Fork(const std::string& title);
  // Deletes the conversation and begins a new one. Returns false if other processes keep deleted text in the database's
  // write-ahead log. Throws StoreError.
  bool Delete();

  // Goes back by `num_turns` questions. Returns the number of turns taken back.
  int64_t Undo(int64_t num_turns);
  // Undoes the last Undo. Returns false if there is none.
  bool Redo();
  // Makes the next message another version of the n-th last question (1: the last one). Returns the text to edit, or
  // nullopt if there is no such question: the question's text or, if the preset made the question, what the user typed.
  std::optional<std::string> Edit(int64_t n);
  // Makes the next message follow the current one again. Returns false if that was so already.
  bool CancelEdit();
  // Goes to this message, which is in the tree. If it is a question, makes the next message another version of it and
  // returns its text, as Edit does.
  std::optional<std::string> GoTo(int64_t id);
  // Goes to the next (+1) or previous (-1) sibling of the current answer or, if there is none, of its question, and
  // there to the last message of the newest branch. Returns false if there is no such sibling.
  bool MoveToSibling(int direction);

  // Begins a new conversation with the system message and the settings of a preset, and sends the following messages
  // through its prompt if it contains {input}. An empty name ends the use of a preset. Throws ConfigError,
  // ResourceError.
  void UsePreset(const std::string& name, const std::vector<std::string>& assignments);
  const std::optional<PresetPrompt>& preset() const { return preset_; }

  // Replaces the model. Throws ConfigError if a batch uses it. All settings that the user has set stay, and the
  // conversation continues. First checks the files of the new model other than its weights, then ends the engine, so
  // that the new model has the memory of the old one. If the weights cannot be loaded, loads the old model again.
  // Throws ConfigError, ModelError, ResourceError, TokenizerError and ChatTemplateError with the old model in place.
  // Throws EngineDeadError if the old model cannot be loaded again.
  void SwitchModel(const std::string& name);

  // Changes a sampling setting or context-shift for the following messages. Throws ConfigError if no setting is called
  // `name` or if `value` is invalid.
  void Set(const std::string& name, const std::string& value);

  // Answers the following messages with the LoRA adapter of this name, or with the base model if it is empty. NAME=PATH
  // first loads the adapter, in place of one with the same name. Throws ConfigError if no adapter has the name, and
  // what FindAdapter, LoadLoRAAdapter and LLMEngine::AddLoRA throw.
  void SetLoRA(const std::string& value);
  // Returns the name of the adapter; empty: the base model.
  std::string lora() const;

  // Switches the model's thinking (see ParseThinkMode), or sets how it is shown (see ParseShowThinking), from the next
  // message on. Throw ConfigError.
  void SetThink(const std::string& mode);
  void SetShowThinking(const std::string& mode);
  // The settings of the display, which /set and /raw change.
  ChatDisplay& display() { return display_; }
  const ChatDisplay& display() const { return display_; }

  const ChatTree& tree() const { return tree_; }
  void SetTitle(const std::string& title);
  // Stores a message that was typed but not sent, until the next message.
  void SetDraft(const std::string& draft);
  ChatStore* store() const { return store_; }
  const std::string& system() const { return system_; }
  const Settings& settings() const { return settings_; }
  const LoadedModel& model() const { return model_; }
  // Returns the answer of the last request; of several at once, the first one.
  const Answer& last_answer() const { return last_answer_; }
  // Returns the calls of the last answer, also broken ones, or null if calls are not recognized.
  const std::vector<ToolCall>* last_calls() const { return tool_format_ == nullptr ? nullptr : &last_calls_; }
  const RequestStats& last_stats() const { return last_answer_.stats; }
  // Returns true if the last SendUserMessage got an answer of at least one token.
  bool last_message_was_answered() const { return was_answered_; }
  ContextShift context_shift() const;
  // Returns the number of questions up to the current message, and how many of the oldest of them are not in the prompt
  // of the last one.
  int64_t num_turns() const;
  int64_t num_dropped_turns() const { return NumDroppedTurns(tree_.PathTo(tree_.current_id())); }
  // Returns the number of tokens up to the current message.
  int64_t num_tokens() const { return static_cast<int64_t>(tree_.TokenIdsUpTo(tree_.current_id()).size()); }

 private:
  // Returns the defaults of a request with the changed settings. Throws ConfigError, whose message begins with `where`.
  SamplingDefaults CheckedDefaults(const Settings& changed, const std::string& where = "/set ") const;
  Settings Changed(const std::vector<SettingChange>& changes) const;
  // Makes the next message another version of `question`. Returns the text to edit.
  std::string BeginEdit(const StoredMessage& question);
  // Returns the message as the preset's prompt makes it. Does not change an edited question that the preset has not
  // made.
  std::string WithPreset(const std::string& message) const;
  // Returns the message that the next question continues.
  int64_t ParentOfNextQuestion() const;
  // Returns the number of tokens of the context that are reserved for the answer. The oldest turns are dropped if the
  // prompt would leave fewer.
  int64_t AnswerReserve() const;
  // Returns the prompt of a question after `parent`, or nullopt after printing why there is none. Without a question,
  // the prompt ends with the results of tools up to `parent`.
  std::optional<BuiltPrompt> BuildPrompt(int64_t parent, const std::string* message) const;
  // Sets the ids of a message whose parent is in the tree, and what they depend on.
  void SetPrompt(const BuiltPrompt& prompt, StoredMessage& message) const;
  void PrintPromptNotes(const BuiltPrompt& prompt);
  // Adds a question to the tree and returns its id, or nullopt after printing why it cannot be asked.
  std::optional<int64_t> AddQuestion(const std::string& message);
  // Returns the question that the current message is or answers. Throws ConfigError if there is none.
  const StoredMessage& CurrentQuestion() const;
  // Returns the id of a question with a prompt for this model: `question`, or a new sibling of it if its stored prompt
  // is for another model or a larger context. Returns nullopt after printing why it cannot be asked.
  std::optional<int64_t> AskableQuestion(const StoredMessage& question);
  // Returns the parameters of another answer to `question`.
  SamplingDefaults DefaultsOfAnotherAnswer(const StoredMessage& question,
                                           const std::vector<SettingChange>& changes) const;
  // Returns an answer without text. Sets the seed in `params` if it has none. `values` describe the parameters.
  StoredMessage NewAnswer(int64_t question, SamplingParams& params, const std::vector<SamplingValue>& values) const;
  // Answers a question. `values` describe the parameters.
  void AnswerQuestion(int64_t question, SamplingParams params, const std::vector<SamplingValue>& values,
                      const ToolRequest& tools);
  // Runs the request for `answer`, whose parent is the question, after its tokens so far. Adds the answer to the tree
  // if its id is 0. Returns its id, or 0 if it has no token.
  int64_t RunRequest(StoredMessage answer, const SamplingParams& params, const ToolRequest& tools);

  // Tools (chat_session_tools.cc).
  std::vector<PollHook> ToolHooks();
  // Gives the chat template the tools.
  void ShowTools();
  void RefreshTools();
  void CheckToolChoice(const Settings& settings) const;
  // Returns the tools that the model sees. --tool-choice counts in the first round of an answer.
  ToolRequest RequestedTools(const Settings& settings, bool is_first_round) const;
  // Returns the parameters with the constraint that makes calls valid, if calls can be constrained. Throws RequestError
  // if a call is demanded but not possible.
  SamplingParams WithConstrainedCalls(SamplingParams params, const ToolRequest& tools);
  // Runs the request and the tools that the answer calls, and so on.
  void AnswerWithTools(StoredMessage answer, const SamplingParams& params, const std::vector<SamplingValue>& values,
                       const ToolRequest& tools);
  // Runs the tools that an answer calls, answers their results, runs the tools that this answer calls, and so on.
  // REQUIRES: last_answer_ and last_calls_ are those of the answer, or its calls have been stored.
  void AnswerCallsOf(int64_t answer, const SamplingParams& params, const std::vector<SamplingValue>& values);
  // Runs calls and adds their results after the message `parent`. Returns the id of the last result, or nullopt if no
  // answer is to follow.
  std::optional<int64_t> RunCalls(const std::vector<ToolCall>& calls, int64_t parent, bool is_over_limit);
  ToolResult RunCall(const ToolCall& call);
  int64_t AddResult(const ToolCall& call, const ToolResult& result, int64_t parent);
  // Answers results of tools. Returns the id of the answer, or 0 if there is none.
  int64_t AnswerResults(int64_t last_result, const SamplingParams& params, const std::vector<SamplingValue>& values);
  // Gives the last result of a round the ids of the next prompt. Returns false after printing why that failed.
  bool BuildPromptOfResults(int64_t last_result);
  // The calls of an answer that have no result yet.
  struct OpenCalls {
    int64_t last = 0;  // the last result, or the answer if there is none
    std::vector<ToolCall> calls;
  };
  // Returns those of the answer that the message is or whose result it is, or nullopt if it is neither.
  std::optional<OpenCalls> OpenCallsAt(int64_t id) const;
  // Continues the calls of the current answer. Returns false if it has none.
  bool ContinueCalls();
  // Adds a failed result for each call that OpenCallsAt returns, because templates expect one. Returns the id of the
  // last result of the answer, or `id` if it is no answer with calls and no result.
  int64_t AddMissingResults(int64_t id);
  // Calls `add_request`. Returns false after printing why the request was not added.
  static bool TryToAdd(const std::function<void()>& add_request);
  // Copies the answer so far to `message` and stores it. Adds the message to the tree if its id is 0.
  void StoreAnswer(const Answer& answer, const ReasoningDisplay& reasoning, StoredMessage& message);
  ShowThinking show_thinking() const;
  std::string NextRequestId() const { return "chat-" + std::to_string(num_requests_); }
  void PrintStoreNotice();
  // Returns how the user can continue a cut answer, after "; ", or "" if it is not stored.
  std::string ContinueHint() const;
  // Updates what depends on the model, after it was replaced.
  void UseModel();
  void PrintStatsLine() const;
  std::unique_ptr<AnswerDisplay> MakeDisplay() const;

  LoadedModel& model_;
  Settings settings_;
  SamplingParams params_;
  ChatStore* store_;
  ChatTree tree_;
  uint64_t model_digest_ = 0;
  std::optional<PromptBuilder> prompt_builder_;
  std::string own_system_;              // of new conversations
  std::string system_;                  // of the current conversation
  std::vector<int64_t> undone_;         // messages that Redo goes to, the next one last
  std::optional<int64_t> next_parent_;  // set by BeginEdit
  bool edits_whole_prompt_ = false;     // the preset has not made the question of the last BeginEdit
  std::optional<PresetPrompt> preset_;
  std::unique_ptr<ToolUse> tools_;  // null: calls are not run
  bool offers_tools_ = true;
  std::shared_ptr<const ToolSet> offered_tools_;  // that the model sees; null: none
  const ToolCallFormat* tool_format_ = nullptr;   // null: calls are not recognized
  CallConstraints call_constraints_;              // of the calls of offered_tools_
  std::optional<SpecialTexts> special_texts_;     // of the model, once a result of a tool needs them
  std::vector<ToolCall> last_calls_;              // of the last answer, also broken ones
  bool reached_chain_limit_ = false;
  Answer last_answer_;
  std::optional<std::string> lora_;  // none: the default of the model
  ChatDisplay display_;
  int64_t num_requests_ = 0;
  bool warned_about_rewriting_ = false;
  bool noted_tool_prompt_ = false;
  bool was_answered_ = false;
};

}  // namespace vllm::app
