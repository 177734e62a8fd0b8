#include "app/pickers/list_picker.h"

#include <algorithm>
#include <utility>

#include "tokenizer/unicode/ascii.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxFilterBytes = 200;

}  // namespace

ListPicker::ListPicker(std::string title, std::vector<PickerRow> rows, int64_t selected, bool can_delete)
    : title_(std::move(title)), rows_(std::move(rows)), can_delete_(can_delete) {
  Match();
  for (size_t i = 0; i < matches_.size(); ++i) {
    if (rows_[matches_[i]].id == selected) position_ = i;
  }
}

void ListPicker::Match() {
  if (selected() != 0) anchor_ = selected();
  matches_.clear();
  position_ = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (tokenizer::FindIgnoringCase(rows_[i].text, filter_) == std::string::npos) continue;
    if (rows_[i].id == anchor_) position_ = matches_.size();
    matches_.push_back(i);
  }
}

void ListPicker::Remove(int64_t id) {
  const size_t position = position_;
  std::erase_if(rows_, [&](const PickerRow& row) { return row.id == id; });
  matches_.clear();  // its indices are no longer valid
  Match();
  position_ = matches_.empty() ? 0 : std::min(position, matches_.size() - 1);
}

bool ListPicker::MoveBy(const Key& key) {
  const size_t last = matches_.empty() ? 0 : matches_.size() - 1;
  const size_t step = std::max<size_t>(page_, 2) - 1;  // one row of the page before stays
  switch (key.code) {
    case KeyCode::kUp:
      position_ -= position_ > 0 ? 1 : 0;
      return true;
    case KeyCode::kDown:
      position_ = std::min(position_ + 1, last);
      return true;
    case KeyCode::kPageUp:
      position_ -= std::min(position_, step);
      return true;
    case KeyCode::kPageDown:
      position_ = std::min(position_ + step, last);
      return true;
    case KeyCode::kHome:
      position_ = 0;
      return true;
    case KeyCode::kEnd:
      position_ = last;
      return true;
    default:
      return false;
  }
}

bool ListPicker::EditFilter(const Key& key) {
  if (key.code == KeyCode::kBackspace) {
    if (!filter_.empty()) filter_.resize(tokenizer::PreviousCodePoint(filter_, filter_.size()));
  } else if (key.code == KeyCode::kCharacter && key.character >= U' ' && filter_.size() < kMaxFilterBytes) {
    tokenizer::AppendCodePoint(key.character, filter_);
  } else {
    return false;
  }
  Match();
  return true;
}

PickerEvent ListPicker::HandleKey(const Key& key) {
  if (key.code != KeyCode::kNone && key.code != KeyCode::kResize && key.code != KeyCode::kRedraw) message_.clear();
  if (key.code == KeyCode::kInterrupt || key.code == KeyCode::kF10) return PickerEvent::kLeft;
  if (mode_ == Mode::kConfirm) {
    if (key.code != KeyCode::kCharacter && key.code != KeyCode::kEscape && key.code != KeyCode::kEnter) {
      return PickerEvent::kNone;
    }
    mode_ = Mode::kList;
    return key.Is('y') || key.Is('Y') ? PickerEvent::kDelete : PickerEvent::kNone;
  }
  if (MoveBy(key)) return PickerEvent::kNone;
  if (mode_ == Mode::kList) return HandleListKey(key);
  if (key.code == KeyCode::kEscape) {
    filter_.clear();
    Match();
    mode_ = Mode::kList;
  } else if (key.code == KeyCode::kEnter) {
    mode_ = Mode::kList;
  } else {
    EditFilter(key);
  }
  return PickerEvent::kNone;
}

PickerEvent ListPicker::HandleListKey(const Key& key) {
  if (key.code == KeyCode::kEnter) return matches_.empty() ? PickerEvent::kNone : PickerEvent::kChosen;
  if (key.Is('q')) return PickerEvent::kLeft;
  if (key.code == KeyCode::kEscape) {
    if (filter_.empty()) return PickerEvent::kLeft;
    filter_.clear();
    Match();
  } else if (key.Is('/') || key.code == KeyCode::kF3) {
    mode_ = Mode::kFilter;
  } else if (key.Is('j')) {
    MoveBy({KeyCode::kDown});
  } else if (key.Is('k')) {
    MoveBy({KeyCode::kUp});
  } else if (key.Is('g')) {
    MoveBy({KeyCode::kHome});
  } else if (key.Is('G')) {
    MoveBy({KeyCode::kEnd});
  } else if (can_delete_ && (key.Is('d') || key.code == KeyCode::kDelete) && !matches_.empty()) {
    mode_ = Mode::kConfirm;
  }
  return PickerEvent::kNone;
}

std::string ListPicker::HelpLine() const {
  if (!message_.empty()) return message_;
  if (mode_ == Mode::kConfirm) return "Delete " + rows_[matches_[position_]].text + "? y: yes, any other key: no";
  if (mode_ == Mode::kFilter) return "/" + filter_ + "_";
  std::string help = filter_.empty() ? "" : "/" + filter_ + "   ";
  help += "Enter: open   /: filter   ";
  if (can_delete_) help += "d: delete   ";
  return help + (filter_.empty() ? "q: back" : "Esc: all   q: back");
}

CellGrid ListPicker::Draw(int num_rows, int num_columns) {
  CellGrid grid(num_rows, num_columns);
  // A screen of one or two rows shows only the list.
  const int first = num_rows >= 3 ? 1 : 0;
  const int height = std::max(1, num_rows - 2 * first);
  page_ = static_cast<size_t>(height);
  if (position_ < top_) top_ = position_;
  if (position_ >= top_ + page_) top_ = position_ - page_ + 1;
  if (top_ + page_ > matches_.size()) top_ = matches_.size() > page_ ? matches_.size() - page_ : 0;
  if (first == 1) {
    const std::string count = matches_.empty()
                                  ? "0 of " + std::to_string(rows_.size())
                                  : std::to_string(position_ + 1) + " of " + std::to_string(matches_.size());
    const int end = grid.Put(0, 0, title_, {.bold = true});
    if (end + 2 + NumColumns(count) <= num_columns) grid.PutRight(0, end, num_columns - end, count, {.dim = true});
    // The last column stays free: a character there makes some terminals scroll.
    const bool is_question = mode_ == Mode::kConfirm || !message_.empty();
    grid.Put(num_rows - 1, 0, HelpLine(), {.bold = is_question, .dim = !is_question}, num_columns - 1);
  }
  if (matches_.empty()) grid.Put(first, 2, "(nothing matches)", {.dim = true});
  for (size_t i = 0; i < page_ && top_ + i < matches_.size(); ++i) {
    const PickerRow& row = rows_[matches_[top_ + i]];
    const int line = first + static_cast<int>(i);
    const int detail_columns = NumColumns(row.detail);
    const bool has_detail = detail_columns > 0 && num_columns >= detail_columns + 40;
    const int text_end = has_detail ? num_columns - detail_columns - 2 : num_columns;
    if (row.is_current) grid.Put(line, 0, "*", {.color = CellColor::kGreen, .bold = true});
    int column = grid.Put(line, 2, row.branch, {.dim = true}, text_end - 2);
    column = grid.Put(line, column, row.text, {.bold = row.is_current, .dim = row.is_dim}, text_end - column);
    if (has_detail) grid.PutRight(line, text_end + 1, detail_columns, row.detail, {.dim = true});
    if (top_ + i == position_) grid.SetStyle(line, 0, num_columns, {.bold = row.is_current, .reverse = true});
  }
  return grid;
}

}  // namespace vllm::app
