// AnswerDisplay: shows one answer while it is generated, as plain text or as rendered Markdown. Owned by the command
// that prints the answer; main thread.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "app/markdown/frame_writer.h"
#include "app/markdown/markdown_renderer.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {

class AnswerDisplay {
 public:
  virtual ~AnswerDisplay() = default;

  // Call before Feed if the answer continues `prior_text`, which was shown before.
  virtual void Begin(std::string_view /*prior_text*/) {}
  // Shows more text. `is_final` ends the answer; the cursor is then at the beginning of a line. Later calls begin
  // another answer. Throws what OutputStream::Write throws.
  virtual void Feed(std::string_view untrusted, bool is_final) = 0;
  // Shows text that Feed has kept back, and draws the end again if the terminal has another size. Call at least every
  // 100 ms while the answer is generated.
  virtual void Tick() {}
  // Call before anything else uses the terminal during the answer, and after that.
  virtual void Suspend() {}
  virtual void Resume() {}
};

// Writes text as it comes, only made safe.
class PlainDisplay : public AnswerDisplay {
 public:
  explicit PlainDisplay(OutputStream& out) : out_(out) {}
  void Feed(std::string_view untrusted, bool is_final) override;

 private:
  OutputStream& out_;
  SafeTextFilter filter_;
  bool at_line_start_ = true;
};

// Renders Markdown on a terminal that can move its cursor. Draws at most one frame per `min_frame_interval`.
class MarkdownDisplay : public AnswerDisplay {
 public:
  static constexpr std::chrono::milliseconds kMinFrameInterval{40};

  // `max_columns` limits the width of text; 0: only the terminal does.
  MarkdownDisplay(OutputStream& out, int max_columns, bool has_styles, bool has_links,
                  std::chrono::milliseconds min_frame_interval = kMinFrameInterval);
  // The unfinished block at the end of `prior_text` is shown again, so that it can be rendered as a whole.
  void Begin(std::string_view prior_text) override;
  void Feed(std::string_view untrusted, bool is_final) override;
  void Tick() override;
  void Suspend() override;
  void Resume() override;

 private:
  void Draw();
  void FollowResize();

  OutputStream& out_;
  const int max_columns_;
  const std::chrono::milliseconds min_frame_interval_;
  int num_rows_;
  int num_columns_;
  MarkdownRenderer renderer_;
  FrameWriter writer_;
  bool has_changed_ = false;
  std::chrono::steady_clock::time_point drawn_at_{};
};

// Returns a MarkdownDisplay if `wants_markdown` and `out` is a terminal that can move its cursor, else a PlainDisplay.
std::unique_ptr<AnswerDisplay> MakeAnswerDisplay(OutputStream& out, bool wants_markdown, int max_columns);

}  // namespace vllm::app
