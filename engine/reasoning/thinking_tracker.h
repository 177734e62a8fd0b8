// ThinkingTracker: follows the token ids of one sequence and says whether it is thinking, how many tokens it has
// thought, and which token ends the thought. Its state is a function of the ids alone, so it does not depend on
// batching, preemption or the number of ids per call. Owned by the InputBatch, a ReasoningSplitter or the chat; one
// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/reasoning/reasoning_format.h"
#include "engine/reasoning/text_markers.h"
#include "tokenizer/decode_stream.h"

namespace vllm {

enum class TokenKind : uint8_t {
  kUndecided,  // white space before a marker or the answer
  kMarker,     // a start or end marker, or a channel name
  kThought,
  kAnswer,
};

class ThinkingTracker {
 public:
  // Starts at the end of the prompt. The sequence is thinking if the prompt ends with a start marker, or with one and
  // text but no special token after it: the question of a user may contain a marker too. If `may_call` is set, a
  // message of any channel may follow a thought of harmony that ends at its budget, because a call is one; otherwise
  // the answer follows.
  ThinkingTracker(std::shared_ptr<const ReasoningFormat> format, std::span<const int32_t> prompt_token_ids,
                  bool may_call = false);

  // Adds the next token of the output. With markers in text, the kind is that of the token's last character.
  TokenKind Feed(int32_t token_id);

  ReasoningPhase phase() const { return phase_; }
  bool is_thinking() const { return phase_ == ReasoningPhase::kThinking; }
  // True once the output or the prompt had a start marker.
  bool has_thought() const { return has_thought_; }
  // Number of tokens after the start marker, also of those in the prompt, without the end marker.
  int64_t num_thinking_tokens() const { return num_thinking_tokens_; }
  // True if the last tokens are an incomplete UTF-8 character.
  bool is_inside_character() const;

  // Returns the token that must follow so that a thought of `budget` tokens ends, or -1 if any token may follow. If the
  // model has begun the end marker, continues it. A thought that ends inside a character may have up to three more
  // tokens.
  int32_t ForcedToken(int64_t budget) const;
  // Returns the ids that end the thought now. REQUIRES: is_thinking().
  std::vector<int32_t> RestOfEndMarker() const;

 private:
  void StartFromPrompt(std::span<const int32_t> prompt_token_ids);
  void StartFromHarmonyPrompt(std::span<const int32_t> prompt_token_ids);
  TokenKind FeedTokens(int32_t token_id);
  TokenKind FeedHarmony(int32_t token_id);
  TokenKind FeedText(int32_t token_id);
  // The next id of the end marker after the part of it that the thought ends with.
  int32_t NextEndToken() const;
  int32_t NextEndTokenOfText() const;

  std::shared_ptr<const ReasoningFormat> format_;
  ReasoningPhase phase_ = ReasoningPhase::kBefore;
  bool has_thought_ = false;
  int64_t num_thinking_tokens_ = 0;
  size_t end_size_;                // number of the format's end_ids that end a thought
  size_t num_end_ids_ = 0;         // length of the longest prefix of them that the output ends with
  std::vector<int32_t> last_ids_;  // up to four
  // kTokens: the thought has no text yet.
  bool at_thought_start_ = false;
  // kHarmony
  bool in_header_ = false;
  bool in_channel_name_ = false;
  bool is_analysis_ = false;
  size_t num_name_ids_ = 0;
  // kText
  std::optional<tokenizer::DecodeStream> stream_;
  std::optional<TextMarkers> text_markers_;
  std::string added_, thought_, answer_;  // scratch
};

}  // namespace vllm
