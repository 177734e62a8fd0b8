// ReasoningSplitter: splits the output of one sequence, as it arrives, into the thought and the answer. The result does
// not depend on how the output is split into calls. Owned by the object that prints or collects the output; one thread.
//
// The thought has no markers, and no white space at its ends. An answer after a thought has no white space at its
// beginning. If the output has no thought, its text is returned unchanged. Every token id is in exactly one of the two
// lists: those of markers, and of white space before them, are in reasoning_token_ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/reasoning/thinking_tracker.h"

namespace vllm {

struct ReasoningParts {
  std::string reasoning;
  std::string text;  // of the answer
  std::vector<int32_t> reasoning_token_ids;
  std::vector<int32_t> token_ids;  // of the answer
};

class ReasoningSplitter {
 public:
  // `skip_special_tokens` is that of the request. If `keeps_markers`, the headers of Harmony's messages are part of the
  // answer, as ToolCallParser needs them.
  ReasoningSplitter(const std::shared_ptr<const ReasoningFormat>& format, std::span<const int32_t> prompt_token_ids,
                    bool skip_special_tokens, bool keeps_markers = false);

  // Appends the new parts of the output to `parts`. `text` is the new text that the engine returned, which may lag
  // behind the tokens. `finished`: this is the last call. A request that continues after prior tokens feeds them and
  // their text first.
  void Feed(std::span<const int32_t> token_ids, std::string_view text, bool finished, ReasoningParts& parts);

  const ThinkingTracker& tracker() const { return tracker_; }
  // Returns the number of reasoning_token_ids before the first of token_ids.
  size_t num_leading_reasoning_ids() const { return num_leading_reasoning_ids_; }

 private:
  struct Segment {
    size_t end;  // offset in the text of the output
    TokenKind kind;
  };
  void FeedToken(int32_t token_id, ReasoningParts& parts);
  void AddText(std::string_view text, TokenKind kind, ReasoningParts& parts);
  void AddThought(std::string_view text, ReasoningParts& parts);
  void AddAnswer(std::string_view text, bool finished, ReasoningParts& parts);
  void AddIds(std::span<const int32_t> ids, bool is_reasoning, ReasoningParts& parts);

  std::shared_ptr<const ReasoningFormat> format_;
  ThinkingTracker tracker_;
  bool skip_special_tokens_;
  bool keeps_markers_;
  tokenizer::DecodeStream stream_;
  std::deque<Segment> segments_;  // of the text that the engine has not returned yet
  size_t decoded_size_ = 0;
  size_t consumed_size_ = 0;
  std::optional<TextMarkers> text_markers_;  // kText only
  size_t num_leading_reasoning_ids_ = 0;
  bool has_answer_ids_ = false;
  std::vector<int32_t> undecided_ids_;
  std::string undecided_text_;
  std::string held_thought_;  // white space that may be the end of the thought, or a beginning of the label
  std::string held_answer_;   // a beginning of answer_start or answer_end
  bool after_marker_ = false;
  bool at_thought_start_ = true;
  bool at_answer_start_ = false;
  bool is_label_done_;
  std::string scratch_;
};

// Splits a finished output at once.
ReasoningParts SplitReasoning(const std::shared_ptr<const ReasoningFormat>& format,
                              std::span<const int32_t> prompt_token_ids, bool skip_special_tokens,
                              std::span<const int32_t> token_ids, std::string_view text, bool keeps_markers = false);

}  // namespace vllm
