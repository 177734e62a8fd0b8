#include "app/markdown/frame_writer.h"

#include <algorithm>
#include <utility>

#include "app/terminal/text_width.h"

namespace vllm::app {
namespace {

// Returns true if `longer` begins with the text and the looks of `row`. Sets the place where the rest begins.
bool IsExtendedBy(const Row& row, const Row& longer, size_t& span, size_t& byte) {
  if (row.is_code != longer.is_code || row.spans.size() > longer.spans.size()) return false;
  span = byte = 0;
  for (size_t i = 0; i < row.spans.size(); ++i) {
    const bool is_last = i + 1 == row.spans.size();
    if (is_last ? !row.spans[i].HasLookOf(longer.spans[i]) : row.spans[i] != longer.spans[i]) return false;
    if (!is_last) continue;
    if (!longer.spans[i].text.view().starts_with(row.spans[i].text.view())) return false;
    span = i;
    byte = row.spans[i].text.view().size();
    // A combining character changes what is drawn before it.
    const std::string_view text = longer.spans[i].text.view();
    if (byte == 0 || byte == text.size()) continue;
    const size_t last = PreviousCluster(text, byte);
    if (last + ClusterAt(text, last).num_bytes != byte) return false;
  }
  return true;
}

}  // namespace

void FrameWriter::AppendRow(const Row& row, size_t first_span, size_t first_byte, StyledText& out) {
  for (size_t i = first_span; i < row.spans.size(); ++i) {
    const RowSpan& span = row.spans[i];
    const size_t begin = i == first_span ? first_byte : 0;
    if (begin == span.text.view().size()) continue;
    if (span.link != nullptr) out.OpenLink(span.link->uri, span.link->number);
    out.Append(span.text.Part(begin, span.text.view().size()), span.style);
    if (span.link != nullptr) out.CloseLink();
  }
}

StyledText FrameWriter::Draw(std::vector<Row> finished, std::vector<Row> tail) {
  // Only the rows of the tail that are on the screen can be drawn again.
  int height = 0;
  size_t first_shown = tail.size();
  while (first_shown > 0 && height + Height(tail[first_shown - 1]) < num_rows_) height += Height(tail[--first_shown]);
  tail.erase(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(first_shown));
  const size_t num_finished = finished.size();
  const bool leaves_line_open = num_finished > 0 && !finished.back().ends_line;
  std::vector<Row> rows = std::move(finished);
  rows.insert(rows.end(), tail.begin(), tail.end());

  size_t num_same = 0;
  while (num_same < drawn_.size() && num_same < rows.size() && rows[num_same].ends_line &&
         drawn_[num_same] == rows[num_same]) {
    ++num_same;
  }
  if (num_same == drawn_.size() && num_same == rows.size() && num_finished == 0) return {};

  StyledText out;
  bool redraws = false;
  size_t next = num_same;  // the next row to write
  size_t span = 0;
  size_t byte = 0;
  if (num_same < drawn_.size()) {
    const bool extends = num_same + 1 == drawn_.size() && num_same < rows.size() &&
                         IsExtendedBy(drawn_[num_same], rows[num_same], span, byte);
    if (extends) {
      AppendRow(rows[num_same], span, byte, out);
      ++next;
    } else {
      redraws = true;
      out.BeginUpdate();
      for (size_t i = drawn_.size(); i-- > num_same;) {
        for (int y = Height(drawn_[i]); y > 0; --y) {
          out.EraseRow();
          if (y > 1 || i > num_same) out.CursorUp();
        }
      }
      if (num_same == rows.size() && num_same > 0 && num_finished < rows.size()) {
        // The cursor returns to the end of the last row that stays: that row is written again.
        out.CursorUp();
        for (int y = Height(rows[num_same - 1]); y > 1; --y) out.CursorUp();
        out.EraseRow();
        AppendRow(rows[num_same - 1], 0, 0, out);
      } else if (num_same < rows.size()) {
        AppendRow(rows[num_same], 0, 0, out);
        ++next;
      }
    }
  } else if (num_same < rows.size()) {
    if (num_same > 0) out.LineFeed();
    AppendRow(rows[num_same], 0, 0, out);
    ++next;
  }
  for (; next < rows.size(); ++next) {
    if (rows[next - 1].ends_line) out.LineFeed();
    AppendRow(rows[next], 0, 0, out);
  }
  const bool erased_all = num_same < drawn_.size() && num_same == rows.size();
  if (tail.empty() && num_finished > 0 && !leaves_line_open && !erased_all) out.LineFeed();
  if (redraws) out.EndUpdate();
  drawn_ = std::move(tail);
  return out;
}

StyledText FrameWriter::Leave() {
  StyledText out;
  if (!drawn_.empty()) out.LineFeed();
  drawn_.clear();
  return out;
}

void FrameWriter::Resize(int num_rows, int num_columns) {
  num_rows_ = num_rows;
  num_columns_ = num_columns;
}

}  // namespace vllm::app
