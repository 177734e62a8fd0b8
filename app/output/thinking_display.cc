#include "app/output/thinking_display.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "app/output/duration_text.h"
#include "app/output/size_text.h"
#include "app/terminal/color_policy.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/styled_text.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// The live line appears after this time, so that a short thought does not flicker.
constexpr auto kLineDelay = std::chrono::milliseconds(300);

OutputStream& StandardError() {
  static OutputStream stream(STDERR_FILENO, "standard error");
  return stream;
}

// Returns the text dim if standard error may have styles. The style ends before each line break.
StyledText Dimmed(const SafeText& text) {
  StyledText dimmed;
  if (!MayColor(STDERR_FILENO)) {
    dimmed.Append(text);
    return dimmed;
  }
  const size_t size = text.view().size();
  for (size_t begin = 0; begin < size;) {
    const size_t end = std::min(text.view().find('\n', begin), size);
    if (end > begin) dimmed.Append(text.Part(begin, end), kDimStyle);
    if (end < size) dimmed.LineFeed();
    begin = end + 1;
  }
  return dimmed;
}

}  // namespace

ShowThinking ParseShowThinking(std::string_view name) {
  if (name == "full") return ShowThinking::kFull;
  if (name == "summary") return ShowThinking::kSummary;
  if (name == "hidden") return ShowThinking::kHidden;
  throw ConfigError("show-thinking: must be full, summary or hidden (" + std::string(name) + ")");
}

std::string ThoughtSummary(std::chrono::milliseconds time, int64_t num_tokens) {
  const std::string duration = time.count() < 1000 ? "briefly" : "for " + DurationText(time);
  return "thought " + duration + ", " + CountedText(num_tokens, "token");
}

ThinkingDisplay::ThinkingDisplay(ShowThinking mode, std::string hint)
    : mode_(mode), hint_(std::move(hint)), line_(kLineDelay) {}

void ThinkingDisplay::Think(std::string_view text, int64_t num_tokens, Clock::time_point now) {
  if (!began_) began_ = now;
  num_tokens_ = num_tokens;
  if (mode_ != ShowThinking::kFull || text.empty()) return;
  SafeText safe;
  filter_.Feed(text, safe);
  if (safe.empty()) return;
  at_line_start_ = safe.view().back() == '\n';
  StandardError().Write(Dimmed(safe));
}

void ThinkingDisplay::Update(Clock::time_point now) {
  if (mode_ != ShowThinking::kSummary || !began_ || ended_ || !line_.IsDue()) return;
  const auto time = time_ + std::chrono::duration_cast<std::chrono::milliseconds>(now - *began_);
  line_.Show("thinking " + DurationText(time) + ", " + CountedText(num_tokens_, "token") + hint_);
}

void ThinkingDisplay::End(Clock::time_point now) {
  if (ended_ || !began_) return;
  ended_ = true;
  line_.Clear();
  time_ += std::chrono::duration_cast<std::chrono::milliseconds>(now - *began_);
  if (mode_ == ShowThinking::kFull && !at_line_start_) StandardError().Write(SafeText("\n"));
  if (mode_ == ShowThinking::kHidden || num_tokens_ == 0) return;
  // Scripts that keep standard error do not need the summary.
  if (mode_ == ShowThinking::kFull || isatty(STDERR_FILENO) == 1) {
    PrintDimStatus("[" + ThoughtSummary(time_, num_tokens_) + "]");
  }
}

}  // namespace vllm::app
