// PromptBuilder: makes the prompt of the next question in a conversation, or of the results of tools, from the exact
// token ids that the model read and sampled. A question appends only the ids of its new text, so that the engine can
// find the earlier turns in its prefix cache. Sampled ids are not tokenized again. Keeps no conversation. Owned by
// ChatSession; main thread.
//
// The template is rendered with a placeholder for each answer. Normally the rendered text starts with the text of the
// previous prompt and the placeholder of its answer, and the rest is the new turn. Most templates of models that think
// leave out the thoughts of earlier turns. Then the prompt continues the ids of the last question, and only the answer
// to it is read again, with its sampled ids but without the thought. If a template rewrites more of the earlier turns,
// the whole conversation is rendered and tokenized again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/chats/stored_message.h"
#include "app/model/prompt_renderer.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

// How to handle a prompt that is too long.
enum class ContextShift : uint8_t {
  kHalf,  // leave out the oldest turns, so that the rest fill at most half of the space
  kOff,   // build no prompt
};

struct BuiltPrompt {
  std::vector<int32_t> token_ids;  // the whole prompt; empty: the question does not fit
  // The length of the prompt that was not built because of ContextShift::kOff; else 0, also if the question does not
  // fit even alone.
  int64_t num_tokens_needed = 0;
  // token_ids[0, ids_begin) is the beginning of the ids up to the last answer, or up to its question; 0 if the history
  // was tokenized again.
  int64_t ids_begin = 0;
  int64_t context_first = 0;      // as in StoredMessage
  int64_t num_dropped_turns = 0;  // turns of the last question's prompt that this one leaves out
  enum class Rewrite : uint8_t { kNone, kByTemplate, kOtherModel, kOtherVariables };
  Rewrite rewrite = Rewrite::kNone;  // the reason why the history was tokenized again, if it was
};

// Returns the number of the oldest questions in `path` that are not in the prompt of the last one.
int64_t NumDroppedTurns(std::span<const StoredMessage* const> path);

class PromptBuilder {
 public:
  // Borrows `renderer` and `tokenizer`. `stop_ids` are the tokens that end an answer. The template normally writes one
  // of them after each answer. `model_digest` identifies the tokenizer and the template (ModelDigest).
  PromptBuilder(const PromptRenderer& renderer, const tokenizer::Tokenizer& tokenizer, std::vector<int32_t> stop_ids,
                uint64_t model_digest);

  // Returns the prompt, at most `max_tokens` ids, of `next` after the messages in `path`, whose token ids are
  // `path_ids`. `next` are results of tools, or a question, or both in this order. If the prompt is longer and `shift`
  // is kHalf, leaves out the oldest turns so that the others fill at most half of the space that the system message and
  // `next` leave. Results of tools keep the question that they belong to. The result depends only on the arguments, so
  // that a conversation continued in another process makes the same cut. Throws ChatTemplateError, EncodingStopped.
  // REQUIRES: the last message of `path` is not a question and not a result of a tool.
  BuiltPrompt Build(std::span<const StoredMessage* const> path, const std::vector<int32_t>& path_ids,
                    std::span<const StoredMessage* const> next, int64_t max_tokens, ContextShift shift) const;

  // From now on, tools are described in the system message by this text (tool_prompt.h), if the template does not show
  // them; "": there are none.
  void SetToolPrompt(std::string text) { tool_prompt_ = std::move(text); }

 private:
  std::string Render(std::vector<tokenizer::ChatMessage> messages, bool add_generation_prompt) const;

  using Path = std::span<const StoredMessage* const>;

  // Messages for the template: the system message of `path`, those of `path` from `first` on, and `next`. Placeholders
  // stand for whole answers, also for the tool calls in them.
  std::vector<tokenizer::ChatMessage> Messages(Path path, size_t first, Path next, bool with_placeholders) const;
  std::string Placeholder(size_t index) const { return nonce_ + std::to_string(index) + "."; }
  // Encodes `tail`, the end of a prompt. If the first stop id is a special token, returns the ids that `tail` has after
  // that token, else the ids that it has without context.
  std::vector<int32_t> EncodeTail(std::string_view tail) const;
  // Renders and encodes `next` after the messages from `first` on.
  std::vector<int32_t> EncodeAll(Path path, size_t first, Path next) const;
  // If the rendered prompt continues the one of the last question, sets the ids of `prompt` and returns true.
  bool ExtendHistory(Path path, size_t first, const std::vector<int32_t>& path_ids, Path next,
                     BuiltPrompt& prompt) const;
  // The same, but returns false if the template does not accept the placeholders of answers with calls.
  bool TryToExtendHistory(Path path, size_t first, const std::vector<int32_t>& path_ids, Path next,
                          BuiltPrompt& prompt) const;
  // Does the same as ExtendHistory if the rendered prompt continues that of the last question without its generation
  // prompt, for example because the template leaves out the thought of the answer.
  bool ExtendQuestion(Path path, size_t first, const std::vector<int32_t>& path_ids, const std::string& rendered,
                      BuiltPrompt& prompt) const;
  // Returns the sampled ids of the answer without its thought, its stop token and white space before it; if these are
  // not the ids of its text, those of its text.
  std::vector<int32_t> AnswerIds(const StoredMessage& answer) const;
  bool IsStopId(int32_t id) const;
  void LeaveOutOldTurns(Path path, size_t first, Path next, int64_t max_tokens, BuiltPrompt& prompt) const;

  const PromptRenderer& renderer_;
  const tokenizer::Tokenizer& tokenizer_;
  std::vector<int32_t> stop_ids_;
  uint64_t model_digest_;
  bool shows_tools_;  // the template has calls and results of tools
  std::string nonce_;
  std::string tool_prompt_;
};

}  // namespace vllm::app
