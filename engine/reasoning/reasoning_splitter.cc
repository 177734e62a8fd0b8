#include "engine/reasoning/reasoning_splitter.h"

#include <algorithm>
#include <array>

#include "tokenizer/tokenizer.h"

namespace vllm {

ReasoningSplitter::ReasoningSplitter(const std::shared_ptr<const ReasoningFormat>& format,
                                     std::span<const int32_t> prompt_token_ids, bool skip_special_tokens,
                                     bool keeps_markers)
    : format_(format),
      tracker_(format, prompt_token_ids),
      skip_special_tokens_(skip_special_tokens),
      keeps_markers_(keeps_markers && format->kind == ReasoningFormat::Kind::kHarmony),
      stream_(*format->tokenizer, skip_special_tokens),
      is_label_done_(format->family->label.empty()) {
  stream_.Prime(prompt_token_ids);
  at_answer_start_ = tracker_.is_thinking();
  if (format_->kind == ReasoningFormat::Kind::kText) {
    text_markers_.emplace(format_->start_texts, format_->end_texts, tracker_.is_thinking());
  }
}

void ReasoningSplitter::AddIds(std::span<const int32_t> ids, bool is_reasoning, ReasoningParts& parts) {
  std::vector<int32_t>& list = is_reasoning ? parts.reasoning_token_ids : parts.token_ids;
  list.insert(list.end(), ids.begin(), ids.end());
  if (!is_reasoning) has_answer_ids_ = has_answer_ids_ || !ids.empty();
  if (!has_answer_ids_) num_leading_reasoning_ids_ += ids.size();
}

void ReasoningSplitter::FeedToken(int32_t token_id, ReasoningParts& parts) {
  const TokenKind kind = tracker_.Feed(token_id);
  if (kind == TokenKind::kUndecided) {
    undecided_ids_.push_back(token_id);
  } else {
    const bool is_reasoning = kind != TokenKind::kAnswer;
    AddIds(undecided_ids_, is_reasoning, parts);
    undecided_ids_.clear();
    AddIds(std::span(&token_id, 1), is_reasoning, parts);
  }
  if (text_markers_) return;
  scratch_.clear();
  stream_.Feed(token_id, scratch_);
  size_t own_size = scratch_.size();
  if (kind == TokenKind::kMarker || after_marker_) {
    // The stream may have withheld text of the tokens before the marker until now.
    const std::array<int32_t, 1> ids = {token_id};
    const std::string own_text = format_->tokenizer->Decode(ids, skip_special_tokens_);
    if (scratch_.ends_with(own_text)) {
      own_size = own_text.size();
    } else if (kind == TokenKind::kMarker) {
      own_size = 0;
    }
  }
  after_marker_ = kind == TokenKind::kMarker;
  const size_t withheld_size = scratch_.size() - own_size;
  if (withheld_size > 0) {
    if (segments_.empty()) {
      segments_.push_back({decoded_size_, tracker_.has_thought() ? TokenKind::kThought : TokenKind::kUndecided});
    }
    segments_.back().end += withheld_size;
  }
  decoded_size_ += scratch_.size();
  if (segments_.empty() || segments_.back().kind != kind) {
    segments_.push_back({decoded_size_, kind});
  } else {
    segments_.back().end = decoded_size_;
  }
}

void ReasoningSplitter::AddThought(std::string_view text, ReasoningParts& parts) {
  held_thought_ += text;
  if (!is_label_done_) {
    const std::string_view label = format_->family->label;
    const std::string_view held = held_thought_;
    if (held.size() < label.size() && label.starts_with(held)) return;
    if (held.starts_with(label)) held_thought_.erase(0, label.size());
    is_label_done_ = true;
  }
  if (at_thought_start_) {
    held_thought_.erase(0, std::min(held_thought_.find_first_not_of(kSpaces), held_thought_.size()));
    if (held_thought_.empty()) return;
    at_thought_start_ = false;
  }
  const size_t last = held_thought_.find_last_not_of(kSpaces);
  if (last == std::string::npos) return;
  parts.reasoning.append(held_thought_, 0, last + 1);
  held_thought_.erase(0, last + 1);
}

void ReasoningSplitter::AddAnswer(std::string_view text, bool finished, ReasoningParts& parts) {
  held_answer_ += text;
  const std::string_view start = format_->family->answer_start;
  const std::string_view end = format_->family->answer_end;
  if (at_answer_start_) {
    held_answer_.erase(0, std::min(held_answer_.find_first_not_of(kSpaces), held_answer_.size()));
    if (held_answer_.empty()) return;
    const std::string_view held = held_answer_;
    if (!finished && held.size() < start.size() && start.starts_with(held)) return;
    if (!start.empty() && held.starts_with(start)) {
      held_answer_.erase(0, start.size());
      held_answer_.erase(0, std::min(held_answer_.find_first_not_of(kSpaces), held_answer_.size()));
      if (held_answer_.empty()) return;
    }
    at_answer_start_ = false;
  }
  if (end.empty() || !tracker_.has_thought()) {
    parts.text += held_answer_;
    held_answer_.clear();
    return;
  }
  if (const size_t at = held_answer_.find(end); at != std::string::npos) held_answer_.erase(at, end.size());
  const size_t num_held = finished ? 0 : PartialMarker(held_answer_, {std::string(end)});
  parts.text.append(held_answer_, 0, held_answer_.size() - num_held);
  held_answer_.erase(0, held_answer_.size() - num_held);
}

void ReasoningSplitter::AddText(std::string_view text, TokenKind kind, ReasoningParts& parts) {
  switch (kind) {
    case TokenKind::kUndecided:
      undecided_text_ += text;
      break;
    case TokenKind::kMarker:
      // A second thought of the same output begins on a new line.
      if (!at_thought_start_) held_thought_ = "\n";
      undecided_text_.clear();
      if (keeps_markers_) {
        parts.text += text;
      } else {
        at_answer_start_ = true;
      }
      break;
    case TokenKind::kThought:
      AddThought(text, parts);
      break;
    case TokenKind::kAnswer:
      AddAnswer(undecided_text_ + std::string(text), false, parts);
      undecided_text_.clear();
      break;
  }
}

void ReasoningSplitter::Feed(std::span<const int32_t> token_ids, std::string_view text, bool finished,
                             ReasoningParts& parts) {
  for (const int32_t id : token_ids) FeedToken(id, parts);
  if (text_markers_) {
    const bool was_before = text_markers_->phase() == ReasoningPhase::kBefore;
    std::string thought;
    std::string answer;
    text_markers_->Feed(text, thought, answer);
    if (was_before && tracker_.has_thought()) at_answer_start_ = true;
    if (finished) text_markers_->Flush(thought, answer);
    AddThought(thought, parts);
    AddAnswer(answer, finished, parts);
  } else {
    while (!text.empty()) {
      // A marker without text still ends the segment before it.
      while (segments_.size() > 1 && segments_.front().end <= consumed_size_) {
        if (segments_.front().kind == TokenKind::kMarker) AddText({}, TokenKind::kMarker, parts);
        segments_.pop_front();
      }
      const size_t left = segments_.empty() || segments_.front().end <= consumed_size_
                              ? text.size()
                              : std::min(text.size(), segments_.front().end - consumed_size_);
      const TokenKind kind = segments_.empty() ? TokenKind::kAnswer : segments_.front().kind;
      AddText(text.substr(0, left), kind, parts);
      consumed_size_ += left;
      text.remove_prefix(left);
    }
    if (finished) {
      std::string rest;
      rest.swap(undecided_text_);
      AddAnswer(rest, true, parts);
    }
  }
  if (finished) {
    AddIds(undecided_ids_, /*is_reasoning=*/false, parts);
    undecided_ids_.clear();
    held_thought_.clear();
  }
}

ReasoningParts SplitReasoning(const std::shared_ptr<const ReasoningFormat>& format,
                              std::span<const int32_t> prompt_token_ids, bool skip_special_tokens,
                              std::span<const int32_t> token_ids, std::string_view text, bool keeps_markers) {
  ReasoningParts parts;
  ReasoningSplitter splitter(format, prompt_token_ids, skip_special_tokens, keeps_markers);
  splitter.Feed(token_ids, text, /*finished=*/true, parts);
  return parts;
}

}  // namespace vllm
