// ListPicker: a full-screen list from which the user chooses a row. It handles keys and draws itself into a CellGrid,
// without a terminal. Owned by the function that shows it; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/screen/cell_grid.h"
#include "app/screen/key.h"

namespace vllm::app {

struct PickerRow {
  int64_t id = 0;
  std::string branch;  // drawn dim in front of the text, and not searched
  std::string text;
  std::string detail;       // drawn at the right edge if there is space
  bool is_current = false;  // marked with *
  bool is_dim = false;
};

enum class PickerEvent : uint8_t {
  kNone,    // draw it again
  kChosen,  // the user has chosen the selected row
  kLeft,    // the user has left
  kDelete,  // the user has confirmed to delete the selected row
};

class ListPicker {
 public:
  // Selects the row with the id `selected`, or else the first one.
  ListPicker(std::string title, std::vector<PickerRow> rows, int64_t selected, bool can_delete);

  // Arrows, j, k, PgUp, PgDn, Home, End, g and G move; / begins a filter, a text that the rows must contain, and Esc
  // removes it; Enter chooses; d or Del asks to delete; q, Esc, F10 and Ctrl-C leave.
  PickerEvent HandleKey(const Key& key);
  // REQUIRES: called before the first HandleKey, and after each change of the size, so that pages have the right
  // length.
  CellGrid Draw(int num_rows, int num_columns);

  // Returns the id of the selected row; 0: no row matches the filter.
  int64_t selected() const { return matches_.empty() ? 0 : rows_[matches_[position_]].id; }
  void Remove(int64_t id);
  // Shows a message in the last line until the next key.
  void SetMessage(std::string message) { message_ = std::move(message); }

 private:
  enum class Mode : uint8_t { kList, kFilter, kConfirm };

  PickerEvent HandleListKey(const Key& key);
  // Returns true if the key edits the filter.
  bool EditFilter(const Key& key);
  bool MoveBy(const Key& key);
  // Finds the rows that match the filter again and selects the row that was selected last, if it is one of them.
  void Match();
  std::string HelpLine() const;

  std::string title_;
  std::vector<PickerRow> rows_;
  bool can_delete_;
  std::string filter_;
  std::vector<size_t> matches_;  // indices of rows_
  int64_t anchor_ = 0;           // the id of the row that was selected last
  size_t position_ = 0;          // in matches_
  size_t top_ = 0;               // the first one on the screen
  size_t page_ = 1;              // rows of the list on the screen
  Mode mode_ = Mode::kList;
  std::string message_;
};

}  // namespace vllm::app
