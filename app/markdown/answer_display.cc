#include "app/markdown/answer_display.h"

#include <algorithm>

#include "app/terminal/color_policy.h"
#include "app/terminal/progress_line.h"

namespace vllm::app {
namespace {

// On a smaller screen, nothing is drawn twice.
constexpr int kMinRows = 4;
constexpr int kMinColumns = 12;

RenderOptions OptionsFor(int num_columns, int max_columns, bool has_styles, bool has_links) {
  RenderOptions options;
  options.screen_columns = num_columns;
  options.columns = std::max(kMinColumns - 1, num_columns - 1);
  if (max_columns > 0) options.columns = std::min(options.columns, max_columns);
  options.has_styles = has_styles;
  options.has_links = has_links;
  return options;
}

}  // namespace

void PlainDisplay::Feed(std::string_view untrusted, bool is_final) {
  SafeText text;
  filter_.Feed(untrusted, text);
  if (is_final) filter_.Flush(text);
  if (!text.empty()) at_line_start_ = text.view().back() == '\n';
  if (is_final && !at_line_start_) {
    text += SafeText("\n");
    at_line_start_ = true;
  }
  out_.Write(text);
}

MarkdownDisplay::MarkdownDisplay(OutputStream& out, int max_columns, bool has_styles, bool has_links,
                                 std::chrono::milliseconds min_frame_interval)
    : out_(out),
      max_columns_(max_columns),
      min_frame_interval_(min_frame_interval),
      num_rows_(TerminalRows(out.fd())),
      num_columns_(TerminalColumns(out.fd())),
      renderer_(OptionsFor(num_columns_, max_columns, has_styles, has_links), num_rows_ - 2),
      writer_(num_rows_, num_columns_) {}

void MarkdownDisplay::Begin(std::string_view prior_text) {
  renderer_.Feed(prior_text);
  renderer_.TakeFinished();
  has_changed_ = !prior_text.empty();
}

void MarkdownDisplay::Feed(std::string_view untrusted, bool is_final) {
  renderer_.Feed(untrusted);
  has_changed_ = has_changed_ || !untrusted.empty();
  if (is_final) {
    renderer_.Finish();
    Draw();
  } else {
    Tick();
  }
}

void MarkdownDisplay::Tick() {
  FollowResize();
  if (has_changed_ && std::chrono::steady_clock::now() >= drawn_at_ + min_frame_interval_) Draw();
}

void MarkdownDisplay::Suspend() { out_.Write(writer_.Leave()); }

void MarkdownDisplay::Resume() { has_changed_ = true; }

void MarkdownDisplay::FollowResize() {
  const int num_rows = TerminalRows(out_.fd());
  const int num_columns = TerminalColumns(out_.fd());
  if (num_rows == num_rows_ && num_columns == num_columns_) return;
  num_rows_ = num_rows;
  num_columns_ = num_columns;
  // The terminal may have wrapped the rows of the tail in another way, so they are not erased.
  out_.Write(writer_.Leave());
  writer_.Resize(num_rows, num_columns);
  const RenderOptions options = OptionsFor(num_columns, max_columns_, false, false);
  renderer_.Resize(options.columns, options.screen_columns, num_rows - 2);
  has_changed_ = true;
}

void MarkdownDisplay::Draw() {
  has_changed_ = false;
  drawn_at_ = std::chrono::steady_clock::now();
  const bool is_too_small = num_rows_ < kMinRows || num_columns_ < kMinColumns;
  std::vector<Row> finished = renderer_.TakeFinished();
  std::vector<Row> tail;
  if (!is_too_small) tail = renderer_.Tail();
  out_.Write(writer_.Draw(std::move(finished), std::move(tail)));
}

std::unique_ptr<AnswerDisplay> MakeAnswerDisplay(OutputStream& out, bool wants_markdown, int max_columns) {
  if (!wants_markdown || !CanMoveCursor(out.fd())) return std::make_unique<PlainDisplay>(out);
  return std::make_unique<MarkdownDisplay>(out, max_columns, MayColor(out.fd()), ShowsHyperlinks());
}

}  // namespace vllm::app
