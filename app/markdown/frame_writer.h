// FrameWriter: turns rows into the bytes that change the end of a screen. Finished rows are written once; the rows of
// the tail are drawn again when they change. Never clears anything above the tail. Owned by a display; main thread.
//
// Invariant: the cursor is at the end of the last drawn row or, if no row is drawn, where the next row begins.
#pragma once

#include <vector>

#include "app/markdown/row.h"
#include "app/terminal/styled_text.h"

namespace vllm::app {

class FrameWriter {
 public:
  FrameWriter(int num_rows, int num_columns) : num_rows_(num_rows), num_columns_(num_columns) {}

  // Returns the bytes that put `finished`, and below it `tail`, in the place of the previous tail. Shows the end of a
  // tail that is higher than the screen. Returns an empty text if nothing changes.
  StyledText Draw(std::vector<Row> finished, std::vector<Row> tail);

  // Returns the bytes that move the cursor to a new line below the tail, and forgets the tail: the next Draw draws it
  // again. For changes of the screen that the writer does not know.
  StyledText Leave();

  void Resize(int num_rows, int num_columns);

 private:
  int Height(const Row& row) const { return RowHeight(row, num_columns_); }
  static void AppendRow(const Row& row, size_t first_span, size_t first_byte, StyledText& out);

  int num_rows_;
  int num_columns_;
  std::vector<Row> drawn_;  // the tail on the screen
};

}  // namespace vllm::app
