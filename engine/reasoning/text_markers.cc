#include "engine/reasoning/text_markers.h"

#include <algorithm>

namespace vllm {

size_t PartialMarker(std::string_view text, const std::vector<std::string>& markers) {
  size_t longest = 0;
  for (const std::string& marker : markers) {
    for (size_t length = std::min(text.size(), marker.size() - 1); length > longest; --length) {
      if (text.ends_with(std::string_view(marker).substr(0, length))) longest = length;
    }
  }
  return longest;
}

bool IsBlank(std::string_view text) { return text.find_first_not_of(kSpaces) == std::string_view::npos; }

void TextMarkers::Feed(std::string_view text, std::string& thought, std::string& answer) {
  if (phase_ == ReasoningPhase::kAnswer) {
    answer += text;
    return;
  }
  held_ += text;
  // A start marker at the beginning. Models sometimes repeat the one that the prompt ends with.
  if (phase_ == ReasoningPhase::kBefore || !has_thought_text_) {
    const size_t begin = held_.find_first_not_of(kSpaces);
    if (begin == std::string::npos) return;
    const std::string_view rest = std::string_view(held_).substr(begin);
    for (const std::string& start : *starts_) {
      if (rest.size() < start.size() && std::string_view(start).starts_with(rest)) return;
      if (!rest.starts_with(start)) continue;
      held_.erase(0, begin + start.size());
      phase_ = ReasoningPhase::kThinking;
      has_thought_text_ = true;
      break;
    }
    if (phase_ == ReasoningPhase::kBefore) {
      phase_ = ReasoningPhase::kAnswer;
      answer += held_;
      held_.clear();
      return;
    }
    has_thought_text_ = true;
  }
  size_t found = std::string::npos;
  size_t end_size = 0;
  for (const std::string& end : *ends_) {
    const size_t at = held_.find(end);
    if (at < found) {
      found = at;
      end_size = end.size();
    }
  }
  if (found != std::string::npos) {
    thought.append(held_, 0, found);
    answer.append(held_, found + end_size);
    held_.clear();
    phase_ = ReasoningPhase::kAnswer;
    return;
  }
  const size_t num_known = held_.size() - PartialMarker(held_, *ends_);
  thought.append(held_, 0, num_known);
  held_.erase(0, num_known);
}

void TextMarkers::Flush(std::string& thought, std::string& answer) {
  (phase_ == ReasoningPhase::kThinking ? thought : answer) += held_;
  held_.clear();
}

}  // namespace vllm
