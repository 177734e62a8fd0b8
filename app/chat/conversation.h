// Conversation: the turns of a chat as the exact token ids that the model read and sampled. A new turn appends only the
// ids of its new text, so that the engine can find the earlier turns in its prefix cache. Owned by ChatSession; main
// thread.
//
// The template is rendered with a placeholder for each answer. Normally the rendered text starts with the text of the
// previous prompt and the placeholder of its answer, and the rest is the new turn. If the template rewrites earlier
// turns, or if turns are dropped, the whole conversation is rendered and tokenized again, including the answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/prompt_renderer.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

class Conversation {
 public:
  // Borrows `renderer` and `tokenizer`. `stop_ids` are the tokens that end an answer. The template normally writes one
  // of them after each answer.
  Conversation(const PromptRenderer& renderer, const tokenizer::Tokenizer& tokenizer, std::vector<int32_t> stop_ids);

  // Restarts the conversation. `system` may be empty.
  void Reset(std::string system);
  const std::string& system() const { return system_; }

  // Returns the prompt for the next answer, at most `max_tokens` ids. If the conversation is longer, drops the oldest
  // turns so that the others fill at most half of the space that the system message and `message` leave, and sets
  // num_dropped_turns. The system message is always kept. If `message` does not fit even without earlier turns, returns
  // an empty vector and keeps all turns. Throws ChatTemplateError, EncodingStopped.
  std::vector<int32_t> BuildPrompt(const std::string& message, int64_t max_tokens);
  // Adds the answer to the last prompt. The answer may be cut off. `token_ids` are the ids as sampled, and `text` is
  // their text.
  void CommitReply(const std::vector<int32_t>& token_ids, const std::string& text);
  // Discards the last prompt. Call this instead of CommitReply if the prompt got no answer.
  void DiscardPending();

  int64_t num_turns() const { return static_cast<int64_t>(turns_.size()); }
  int64_t num_tokens() const { return static_cast<int64_t>(ids_.size()); }
  // Number of turns that the last BuildPrompt dropped.
  int64_t num_dropped_turns() const { return num_dropped_turns_; }
  // Returns true if the last BuildPrompt processed the whole conversation again because the template rewrites earlier
  // turns.
  bool was_rerendered() const { return was_rerendered_; }

 private:
  struct Turn {
    std::string message;
    std::string answer;
    std::string placeholder;
  };

  std::vector<tokenizer::ChatMessage> Messages(const std::string& message, bool with_placeholders) const;
  // Encodes `tail`, the end of a prompt. If the first stop id is a special token, returns the ids that `tail` has after
  // that token, else the ids that it has on its own.
  std::vector<int32_t> EncodeTail(std::string_view tail) const;
  // Renders and encodes the whole conversation with `message` as the newest message.
  std::vector<int32_t> EncodeAll(const std::string& message) const;
  // Drops the oldest turns so that `message` fits, and returns the new prompt. If `message` does not fit even without
  // earlier turns, keeps all turns and returns an empty vector.
  std::vector<int32_t> DropOldTurns(const std::string& message, int64_t max_tokens);

  const PromptRenderer& renderer_;
  const tokenizer::Tokenizer& tokenizer_;
  std::vector<int32_t> stop_ids_;
  std::string system_;
  std::vector<Turn> turns_;
  std::vector<int32_t> ids_;  // of all turns_, including the last answer
  std::string rendered_;      // the last prompt as text, with placeholders for answers
  bool exact_ = true;         // ids_ and rendered_ match turns_
  // Set by BuildPrompt for CommitReply.
  std::string pending_message_;
  std::string pending_rendered_;
  std::vector<int32_t> pending_ids_;
  int64_t num_dropped_turns_ = 0;
  bool was_rerendered_ = false;
  std::string nonce_;
  int64_t next_placeholder_ = 0;
};

}  // namespace vllm::app
