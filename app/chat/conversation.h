// Conversation: what was said, as the exact token ids that the model saw and made. A new turn adds the ids of the new
// text alone, so the engine finds all earlier turns in its prefix cache and nothing the model said is tokenized again.
//
// The template is rendered with a placeholder for each answer. Invariant: the text before the newest message is the
// text rendered for the turns before it; what lies between the last placeholder and the end is what a new turn adds. A
// template that rewrites history breaks this; then the whole conversation is rendered and tokenized anew.
// Owned by the chat; main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/prompt_renderer.h"
#include "tokenizer/tokenizer.h"

namespace vllm {

class Conversation {
 public:
  // Borrowed. `stop_ids` are tokens that end an answer: they belong to the template's text, not to the answer.
  Conversation(const PromptRenderer& renderer, const Tokenizer& tokenizer, std::vector<int32_t> stop_ids);

  // Begins anew with this system message; empty: none.
  void Reset(std::string system);
  const std::string& system() const { return system_; }

  // The prompt for the next answer, at most `max_tokens` ids. When the conversation is longer, the oldest turns are
  // dropped until the rest takes about half of the room, and counted in num_dropped_turns; the system message stays.
  // Empty when the message alone is too long; the conversation is unchanged then. Throws ChatTemplateError.
  std::vector<int32_t> BuildPrompt(const std::string& message, int64_t max_tokens);
  // Takes the answer to the last Ask, whole or cut off: the ids as sampled and their text.
  void CommitReply(const std::vector<int32_t>& token_ids, const std::string& text);
  // Forgets the last Ask: it got no answer.
  void DiscardPending();

  int64_t num_turns() const { return static_cast<int64_t>(turns_.size()); }
  int64_t num_tokens() const { return static_cast<int64_t>(ids_.size()); }
  int64_t num_dropped_turns() const { return num_dropped_turns_; }  // by the last Ask
  bool was_rendered_anew() const { return was_rendered_anew_; }     // by the last Ask, because of the template

 private:
  struct Turn {
    std::string message;
    std::string answer;
    std::string placeholder;
  };

  std::vector<ChatMessage> Messages(const std::string& message, bool with_placeholders) const;
  std::vector<int32_t> EncodeTail(std::string_view tail) const;
  std::vector<int32_t> RenderAnew(const std::string& message) const;
  // Drops turns to make room for `message` and returns the new prompt; empty, with all turns kept, when the message
  // alone is longer than `max_tokens`.
  std::vector<int32_t> DropOldTurns(const std::string& message, int64_t max_tokens);

  const PromptRenderer& renderer_;
  const Tokenizer& tokenizer_;
  std::vector<int32_t> stop_ids_;
  std::string system_;
  std::vector<Turn> turns_;
  std::vector<int32_t> ids_;  // of all turns_, the last answer included
  std::string rendered_;      // the prompt text of the last turn, with placeholders
  bool exact_ = true;         // ids_ and rendered_ belong together
  // What Ask prepared.
  std::string pending_message_;
  std::string pending_rendered_;
  std::vector<int32_t> pending_ids_;
  int64_t num_dropped_turns_ = 0;
  bool was_rendered_anew_ = false;
  std::string nonce_;
  int64_t next_placeholder_ = 0;
};

}  // namespace vllm
