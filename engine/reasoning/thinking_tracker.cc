#include "engine/reasoning/thinking_tracker.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

using Kind = ReasoningFormat::Kind;

// A UTF-8 character has at most four bytes, so at most three tokens follow its first one.
constexpr size_t kMaxCharacterTokens = 4;
// Templates write a few tokens after a start marker. A longer end of the prompt need not be decoded.
constexpr size_t kMaxPromptTail = 256;

bool IsBlankToken(const tokenizer::Tokenizer& tokenizer, int32_t id) {
  const std::array<int32_t, 1> ids = {id};
  return IsBlank(tokenizer.Decode(ids, /*skip_special_tokens=*/false));
}

}  // namespace

ThinkingTracker::ThinkingTracker(std::shared_ptr<const ReasoningFormat> format,
                                 std::span<const int32_t> prompt_token_ids, bool may_call)
    : format_(std::move(format)), end_size_(format_->end_ids.size()) {
  last_ids_.reserve(kMaxCharacterTokens);
  if (format_->kind == Kind::kHarmony) {
    const auto channel = std::ranges::find(format_->end_ids, format_->channel_id);
    if (may_call) end_size_ = static_cast<size_t>(channel - format_->end_ids.begin());
    StartFromHarmonyPrompt(prompt_token_ids);
  } else {
    StartFromPrompt(prompt_token_ids);
  }
  if (format_->kind == Kind::kText) {
    stream_.emplace(*format_->tokenizer, /*skip_special_tokens=*/true);
    stream_->Prime(prompt_token_ids.last(std::min(prompt_token_ids.size(), kMaxPromptTail)));
    text_markers_.emplace(format_->start_texts, format_->end_texts, is_thinking());
  }
}

void ThinkingTracker::StartFromPrompt(std::span<const int32_t> prompt_token_ids) {
  const tokenizer::Tokenizer& tokenizer = *format_->tokenizer;
  // The tokens after the last special token, or after the last marker.
  size_t begin = prompt_token_ids.size();
  bool is_open = false;
  bool is_closed = false;
  while (begin > 0) {
    const int32_t id = prompt_token_ids[begin - 1];
    if (format_->kind == Kind::kTokens && (id == format_->start_id || id == format_->end_id)) {
      is_open = id == format_->start_id;
      is_closed = !is_open;
      break;
    }
    if (tokenizer.IsSpecial(id)) break;
    --begin;
  }
  std::span<const int32_t> tail = prompt_token_ids.subspan(begin);
  if (format_->kind == Kind::kText) {
    tail = tail.last(std::min(tail.size(), kMaxPromptTail));
    const std::string text = tokenizer.Decode(tail, true);
    size_t start = std::string::npos;
    for (const std::string& marker : format_->start_texts) {
      const size_t at = text.rfind(marker);
      if (at != std::string::npos && (start == std::string::npos || at > start)) start = at;
    }
    for (const std::string& marker : format_->end_texts) {
      const size_t at = text.rfind(marker);
      if (at != std::string::npos && (start == std::string::npos || at > start)) is_closed = true;
    }
    is_open = start != std::string::npos && !is_closed;
    // How many tokens the rest of the marker's line takes is not known without encoding it.
    if (is_open) tail = {};
  }
  if (!is_open && (is_closed || !format_->begins_inside)) return;
  phase_ = ReasoningPhase::kThinking;
  has_thought_ = true;
  if (is_open) num_thinking_tokens_ = static_cast<int64_t>(tail.size());
  at_thought_start_ = !is_open || IsBlank(tokenizer.Decode(tail, false));
}

void ThinkingTracker::StartFromHarmonyPrompt(std::span<const int32_t> prompt_token_ids) {
  // Replay the last message of the prompt.
  size_t begin = prompt_token_ids.size();
  while (begin > 0 && prompt_token_ids[begin - 1] != format_->message_start_id &&
         prompt_token_ids[begin - 1] != format_->message_end_id) {
    --begin;
  }
  if (begin == 0 || prompt_token_ids[begin - 1] == format_->message_end_id) return;
  in_header_ = true;
  for (const int32_t id : prompt_token_ids.subspan(begin)) FeedHarmony(id);
}

TokenKind ThinkingTracker::Feed(int32_t token_id) {
  if (last_ids_.size() == kMaxCharacterTokens) last_ids_.erase(last_ids_.begin());
  last_ids_.push_back(token_id);
  const std::vector<int32_t>& end = format_->end_ids;
  if (is_thinking() || num_end_ids_ > 0) {
    size_t& length = num_end_ids_;
    while (length > 0 && end[length] != token_id) length = format_->end_failure[length];
    if (end[length] == token_id) ++length;
    if (length == end_size_) length = 0;
  }
  switch (format_->kind) {
    case Kind::kTokens:
      return FeedTokens(token_id);
    case Kind::kHarmony:
      return FeedHarmony(token_id);
    case Kind::kText:
      return FeedText(token_id);
  }
  return TokenKind::kAnswer;
}

TokenKind ThinkingTracker::FeedTokens(int32_t token_id) {
  if (phase_ == ReasoningPhase::kAnswer) return TokenKind::kAnswer;
  if (phase_ == ReasoningPhase::kBefore) {
    if (token_id == format_->start_id) {
      phase_ = ReasoningPhase::kThinking;
      has_thought_ = true;
      return TokenKind::kMarker;
    }
    if (IsBlankToken(*format_->tokenizer, token_id)) return TokenKind::kUndecided;
    phase_ = ReasoningPhase::kAnswer;
    return TokenKind::kAnswer;
  }
  if (token_id == format_->end_id) {
    phase_ = ReasoningPhase::kAnswer;
    return TokenKind::kMarker;
  }
  if (at_thought_start_) {
    // Some models repeat the start marker with which the prompt ends.
    if (token_id == format_->start_id) {
      at_thought_start_ = false;
      return TokenKind::kMarker;
    }
    at_thought_start_ = IsBlankToken(*format_->tokenizer, token_id);
  }
  ++num_thinking_tokens_;
  return TokenKind::kThought;
}

TokenKind ThinkingTracker::FeedHarmony(int32_t token_id) {
  if (token_id == format_->message_start_id) {
    in_header_ = true;
    in_channel_name_ = false;
    is_analysis_ = false;
    return TokenKind::kMarker;
  }
  if (token_id == format_->channel_id) {
    in_header_ = true;
    in_channel_name_ = true;
    is_analysis_ = true;
    num_name_ids_ = 0;
    return TokenKind::kMarker;
  }
  if (in_header_ && token_id == format_->message_id) {
    in_header_ = false;
    const bool is_analysis = in_channel_name_ && is_analysis_ && num_name_ids_ >= format_->analysis_ids.size();
    phase_ = is_analysis ? ReasoningPhase::kThinking : ReasoningPhase::kAnswer;
    if (is_analysis) has_thought_ = true;
    return TokenKind::kMarker;
  }
  if (token_id == format_->message_end_id) {
    phase_ = ReasoningPhase::kBefore;
    in_header_ = true;
    return TokenKind::kMarker;
  }
  if (in_header_) {
    const std::vector<int32_t>& name = format_->analysis_ids;
    if (in_channel_name_ && num_name_ids_ < name.size() && name[num_name_ids_] != token_id) is_analysis_ = false;
    ++num_name_ids_;
    // An output that begins with neither a channel nor a new message is an answer.
    const bool is_first_output = last_ids_.size() == 1;
    if (!in_channel_name_ && is_first_output) {
      in_header_ = false;
      phase_ = ReasoningPhase::kAnswer;
      return TokenKind::kAnswer;
    }
    return TokenKind::kMarker;
  }
  if (phase_ == ReasoningPhase::kBefore) phase_ = ReasoningPhase::kAnswer;
  if (phase_ == ReasoningPhase::kAnswer) return TokenKind::kAnswer;
  ++num_thinking_tokens_;
  return TokenKind::kThought;
}

TokenKind ThinkingTracker::FeedText(int32_t token_id) {
  if (phase_ == ReasoningPhase::kAnswer) return TokenKind::kAnswer;
  added_.clear();
  thought_.clear();
  answer_.clear();
  stream_->Feed(token_id, added_);
  const ReasoningPhase before = phase_;
  text_markers_->Feed(added_, thought_, answer_);
  phase_ = text_markers_->phase();
  if (phase_ == ReasoningPhase::kBefore) return TokenKind::kUndecided;
  if (phase_ == ReasoningPhase::kAnswer) {
    return before == ReasoningPhase::kThinking ? TokenKind::kMarker : TokenKind::kAnswer;
  }
  if (before == ReasoningPhase::kBefore) {
    has_thought_ = true;
    return TokenKind::kMarker;
  }
  ++num_thinking_tokens_;
  return TokenKind::kThought;
}

bool ThinkingTracker::is_inside_character() const {
  return format_->tokenizer->Decode(last_ids_, /*skip_special_tokens=*/false)
      .ends_with(tokenizer::kReplacementCharacter);
}

int32_t ThinkingTracker::ForcedToken(int64_t budget) const {
  if (num_thinking_tokens_ < budget) return -1;
  if (!is_thinking()) {
    // Between the messages of Harmony: finish the end marker that has begun.
    const bool has_begun = format_->kind == Kind::kHarmony && phase_ == ReasoningPhase::kBefore && num_end_ids_ > 0;
    return has_begun ? format_->end_ids[num_end_ids_] : -1;
  }
  const bool may_wait = num_thinking_tokens_ - budget < static_cast<int64_t>(kMaxCharacterTokens) - 1;
  if (may_wait && num_thinking_tokens_ > 0 && num_end_ids_ == 0 && is_inside_character()) return -1;
  return NextEndToken();
}

int32_t ThinkingTracker::NextEndToken() const {
  if (format_->kind == Kind::kText) {
    const int32_t id = NextEndTokenOfText();
    if (id >= 0) return id;
  }
  return format_->end_ids[num_end_ids_];
}

int32_t ThinkingTracker::NextEndTokenOfText() const {
  // The model may have begun the marker with other tokens than the tokenizer would.
  const std::string& held = text_markers_->held();
  const std::string& end = format_->end_texts[0];
  const size_t length = PartialMarker(held, {end});
  if (length == 0 || last_ids_.empty()) return -1;
  const tokenizer::Tokenizer& tokenizer = *format_->tokenizer;
  const std::span<const int32_t> begun = std::span(format_->end_ids).first(num_end_ids_);
  if (tokenizer.Decode(begun, false) == end.substr(0, length)) return -1;  // with the same tokens
  const std::string rest = end.substr(length);
  const std::vector<int32_t> ids = tokenizer.Encode(rest, false);
  if (ids.empty()) return -1;
  // The tokenizer may put a space in front of the text that it encodes. That token would not continue the marker.
  const std::array<int32_t, 2> pair = {last_ids_.back(), ids[0]};
  const std::string last = tokenizer.Decode(std::span(pair).first(1), false);
  const std::string both = tokenizer.Decode(pair, false);
  const bool continues = both.size() > last.size() && both.starts_with(last) &&
                         std::string_view(rest).starts_with(std::string_view(both).substr(last.size()));
  return continues ? ids[0] : -1;
}

std::vector<int32_t> ThinkingTracker::RestOfEndMarker() const {
  std::vector<int32_t> ids;
  if (format_->kind == Kind::kText) {
    const std::string& end = format_->end_texts[0];
    const size_t length = PartialMarker(text_markers_->held(), {end});
    if (length > 0 && NextEndTokenOfText() >= 0) return format_->tokenizer->Encode(end.substr(length), false);
  }
  ids.assign(format_->end_ids.begin() + static_cast<std::ptrdiff_t>(num_end_ids_),
             format_->end_ids.begin() + static_cast<std::ptrdiff_t>(end_size_));
  return ids;
}

}  // namespace vllm
