// DraftView: knows which rows of a draft a terminal shows, and makes the bytes that change them. It moves the cursor
// only relative to its position, and never above the first row of the draft, so that everything above the draft and the
// scrollback stay unchanged. The terminal does not wrap rows whose width is uncertain; wrapping is on again after
// each row, because a process may be killed between two of them. Owned by LineEditor; main thread.
//
//   ESC [ n A   up            ESC [ J   erase to the end of the screen      ESC [ ? 7 l   do not wrap
//   ESC [ n C   right         ESC [ K   erase to the end of the row         ESC [ ? 7 h   wrap
#pragma once

#include <string>
#include <vector>

#include "app/editor/draft_layout.h"

namespace vllm::app {

// Returns the bytes that write a row which the terminal does not wrap.
std::string UnwrappedText(const SafeText& text);

class DraftView {
 public:
  // Returns bytes that show `layout` in place of the rows that are shown now. Unchanged rows are not written.
  std::string Draw(const DraftLayout& layout);
  // Returns bytes that erase the rows that are shown and leave the cursor where the first of them began.
  std::string Erase();
  // Call when the cursor is at the beginning of an empty row that is not part of the draft.
  void Forget();
  // Call when the terminal may have changed the rows, for example after a change of its size. The next Draw writes all
  // of them.
  void Invalidate() { is_valid_ = false; }

 private:
  std::string ToTop() const;
  bool AppendsToRow(const DraftLayout& layout) const;
  std::string DrawChangedRows(const DraftLayout& layout);

  std::vector<DraftRow> rows_;  // empty: none are shown
  int cursor_row_ = 0;          // where the cursor is, as an index in rows_
  std::string before_cursor_;   // the text of that row before the cursor
  bool is_valid_ = true;
};

}  // namespace vllm::app
