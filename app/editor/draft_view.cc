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

std::string DraftView::ToTop() const { return "\r" + Up(cursor_row_); }

std::string DraftView::Draw(const DraftLayout& layout) {
  std::string bytes(kNoWrap);
  bytes += ToTop();
  if (!is_valid_) {
    bytes += kEraseBelow;
    rows_.clear();
  }
  const size_t num_rows = layout.rows.size();
  for (size_t i = 0; i < num_rows; ++i) {
    if (i > 0) bytes += "\r\n";
    const DraftRow& row = layout.rows[i];
    const bool is_last = i + 1 == num_rows;
    if (i >= rows_.size() || !(rows_[i] == row)) {
      bytes += row.text.view();
      bytes += is_last ? kEraseBelow : kEraseRow;
    } else if (is_last && rows_.size() > num_rows) {
      bytes += row.text.view();
      bytes += kEraseBelow;
    }
  }
  bytes += Up(static_cast<int>(num_rows) - 1 - layout.cursor_row);
  bytes += "\r";
  const std::string_view before = layout.before_cursor.view();
  if (!IsAscii(before)) {
    // Written again instead of moving over it, because the terminal may give it another width.
    bytes += before;
  } else if (!before.empty()) {
    bytes += "\x1b[" + std::to_string(before.size()) + "C";
  }
  bytes += kWrap;
  rows_ = layout.rows;
  cursor_row_ = layout.cursor_row;
  is_valid_ = true;
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
  is_valid_ = true;
}

}  // namespace vllm::app
