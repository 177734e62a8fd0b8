#include "engine/tool_calls/text/literal_matcher.h"

#include <utility>

#include "engine/tool_calls/text/json_escape.h"

namespace vllm {

std::string_view StripSpace(std::string_view text) {
  while (!text.empty() && IsCallSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsCallSpace(text.back())) text.remove_suffix(1);
  return text;
}

void LiteralMatcher::Reset(std::vector<std::string_view> choices) {
  choices_ = std::move(choices);
  size_ = 0;
  index_ = 0;
}

LiteralMatcher::Result LiteralMatcher::Feed(char c) {
  if (size_ == 0 && IsCallSpace(c)) return Result::kMore;
  const std::string_view read = size_ == 0 ? std::string_view() : choices_[index_].substr(0, size_);
  for (size_t i = 0; i < choices_.size(); ++i) {
    const std::string_view choice = choices_[i];
    if (choice.size() <= size_ || choice[size_] != c || !choice.starts_with(read)) continue;
    index_ = i;
    ++size_;
    return size_ == choice.size() ? Result::kMatched : Result::kMore;
  }
  return Result::kFailed;
}

}  // namespace vllm
