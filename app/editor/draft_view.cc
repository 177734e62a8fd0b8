#include "app/editor/draft_view.h"

#include <algorithm>

namespace vllm::app {
namespace {

constexpr std::string_view kNoWrap = "\x1b[?7l";
constexpr std::string_view kWrap = "\x1b[?7h";
constexpr std::string_view kEraseRow = "\x1b[K";
constexpr std::string_view kEraseBelow = "\x1b[J";

std::string Up(int num_rows) { return num_rows == 0 ? "" : "\x1b[" + std::to_string(num_rows) + "A"; }

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string UnwrappedText(const SafeText& text) {
  // Only text whose width is uncertain could reach the edge.
  if (IsAscii(text.view())) return std::string(text.view());
  return std::string(kNoWrap) + std::string(text.view()) + std::string(kWrap);
}

std::string DraftView::ToTop() const { return "\r" + Up(cursor_row_); }

std::string DraftView::Draw(const DraftLayout& layout) {
  const std::string_view before = layout.before_cursor.view();
  std::string bytes;
  if (is_valid_ && rows_ == layout.rows && cursor_row_ == layout.cursor_row && before_cursor_ == before) return bytes;
  if (AppendsToRow(layout)) {
    bytes = before.substr(before_cursor_.size());
  } else {
    bytes = DrawChangedRows(layout);
  }
  rows_ = layout.rows;
  cursor_row_ = layout.cursor_row;
  before_cursor_ = before;
  is_valid_ = true;
  return bytes;
}

// Returns true if the layout differs only in ASCII text after the cursor, which is at the end of its row.
bool DraftView::AppendsToRow(const DraftLayout& layout) const {
  if (!is_valid_ || rows_.size() != layout.rows.size() || cursor_row_ != layout.cursor_row) return false;
  const auto row = static_cast<size_t>(cursor_row_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (i != row && !(rows_[i] == layout.rows[i])) return false;
  }
  const std::string_view text = layout.rows[row].text.view();
  return rows_[row].text.view() == before_cursor_ && text == layout.before_cursor.view() &&
         text.starts_with(before_cursor_) && IsAscii(text);
}

std::string DraftView::DrawChangedRows(const DraftLayout& layout) {
  const bool is_new = rows_.empty();
  std::string bytes = is_new ? "" : ToTop();
  if (!is_valid_) {
    bytes += kEraseBelow;
    rows_.clear();
  }
  const size_t num_rows = layout.rows.size();
  bool is_at_end = false;  // of the last row
  for (size_t i = 0; i < num_rows; ++i) {
    if (i > 0) bytes += "\r\n";
    const bool is_last = i + 1 == num_rows;
    if (i < rows_.size() && rows_[i] == layout.rows[i] && !(is_last && rows_.size() > num_rows)) continue;
    if (i < rows_.size()) bytes += is_last ? kEraseBelow : kEraseRow;
    bytes += UnwrappedText(layout.rows[i].text);
    is_at_end = is_last;
  }
  const std::string_view before = layout.before_cursor.view();
  const bool ends_at_cursor =
      static_cast<size_t>(layout.cursor_row) + 1 == num_rows && layout.rows.back().text.view() == before;
  if (!is_at_end || !ends_at_cursor) {
    bytes += Up(static_cast<int>(num_rows) - 1 - layout.cursor_row) + "\r";
    if (!IsAscii(before)) {
      // Written again instead of moving over it, because the terminal may give it another width.
      bytes += UnwrappedText(layout.before_cursor);
    } else if (!before.empty()) {
      bytes += "\x1b[" + std::to_string(before.size()) + "C";
    }
  }
  return bytes;
}

std::string DraftView::Erase() {
  std::string bytes = ToTop();
  bytes += kEraseBelow;
  Forget();
  return bytes;
}

void DraftView::Forget() {
  rows_.clear();
  cursor_row_ = 0;
  before_cursor_.clear();
  is_valid_ = true;
}

}  // namespace vllm::app
