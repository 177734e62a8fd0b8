// Renders Markdown as the chat does, for tests: in pieces, with a FrameWriter, on an emulated screen.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/markdown/frame_writer.h"
#include "app/markdown/markdown_renderer.h"
#include "tests/support/terminal_emulator.h"

namespace vllm::app {

struct ScreenSize {
  int num_rows = 24;
  int num_columns = 80;
};

inline RenderOptions OptionsFor(const ScreenSize& size, bool has_styles = true, bool has_links = false) {
  RenderOptions options;
  options.columns = size.num_columns - 1;
  options.screen_columns = size.num_columns;
  options.has_styles = has_styles;
  options.has_links = has_links;
  return options;
}

// Returns what a terminal driver makes of a program's output.
inline std::string AfterTerminalDriver(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (c == '\n') out += '\r';
    out += c;
  }
  return out;
}

// Returns the rows of `text` when it is rendered in one piece.
inline std::vector<Row> RenderWhole(std::string_view text, const ScreenSize& size, const RenderOptions& options) {
  MarkdownRenderer renderer(options, size.num_rows - 2);
  renderer.Feed(text);
  renderer.Finish();
  return renderer.TakeFinished();
}

// Returns the texts of these rows, each with a line feed.
inline std::string TextOf(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    text += row.Text().view();
    if (row.ends_line) text += '\n';
  }
  return text;
}

// Renders `text` in pieces that end where `next_piece` says, and draws a frame after each. Returns the bytes.
inline std::string StreamBytes(std::string_view text, const ScreenSize& size, const RenderOptions& options,
                               const std::function<size_t()>& next_piece) {
  MarkdownRenderer renderer(options, size.num_rows - 2);
  FrameWriter writer(size.num_rows, size.num_columns);
  std::string bytes;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, next_piece());
    text.remove_prefix(piece.size());
    renderer.Feed(piece);
    std::vector<Row> finished = renderer.TakeFinished();
    bytes += writer.Draw(std::move(finished), renderer.Tail()).view();
  }
  renderer.Finish();
  std::vector<Row> finished = renderer.TakeFinished();
  bytes += writer.Draw(std::move(finished), renderer.Tail()).view();
  return bytes;
}

}  // namespace vllm::app
