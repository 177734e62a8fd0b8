// MarkdownRenderer: renders Markdown that arrives in pieces. It gives out two kinds of rows: finished rows, once, and
// the tail, the rows of the block that may still change. Owned by a display; main thread.
//
// Invariant 1: The text of the finished rows after Finish() does not depend on how the text was cut into pieces.
// Invariant 2: Every character of the source is in exactly one row, except markers that the rows show in another way.
//
// A block is finished when a line begins another one. A block whose rows would not fit on the screen is finished row by
// row: its later rows are rendered again from the whole source of the block, so that they keep their place in lists and
// quotes. Lines of code are finished at their line feed. A block is cut at the first line end after kMaxBlockBytes, and
// inside a line after twice as many, so that the work for a piece of text is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/markdown/block_renderer.h"
#include "app/markdown/code_lexer.h"
#include "app/markdown/row.h"
#include "app/markdown/source_line.h"

namespace vllm::app {

class MarkdownRenderer {
 public:
  // `max_tail_rows` limits the tail.
  MarkdownRenderer(const RenderOptions& options, int max_tail_rows);

  void Feed(std::string_view untrusted);
  // Ends the text. Feed then begins another one.
  void Finish();

  // Returns the rows that were finished since the last call.
  std::vector<Row> TakeFinished();
  // Returns the rows of the unfinished text, which may be a few more than the limit.
  std::vector<Row> Tail() const;

  // Sets the size of the screen. Finished rows do not change.
  void Resize(int columns, int screen_columns, int max_tail_rows);

 private:
  enum class Mode : uint8_t { kNone, kBlock, kFence, kIndented, kMath, kPlain };
  enum class Kind : uint8_t { kParagraph, kSingleLine, kItem, kQuote, kTable };

  enum class ListKind : uint8_t { kNone, kBullets, kOrdered };

  // An item of a list that continues after a code block.
  struct ItemContext {
    int content_column;
    int indent;
  };
  struct Block {
    Kind kind = Kind::kParagraph;
    ListKind list = ListKind::kNone;
    std::string source;
    BlockPosition position;
    int strip = 0;           // columns of white space to remove from each line
    int content_column = 0;  // of an item
    int text_indent = 0;     // of an item: the columns before its text
    bool has_blank_line = false;
    std::optional<ColumnWidths> table_widths;
    size_t last_line = 0;  // where the last complete line begins
    size_t num_lines = 0;
    size_t head_bytes = 0;  // of a table: its first two lines
  };

  bool IsCode() const { return mode_ == Mode::kFence || mode_ == Mode::kIndented || mode_ == Mode::kMath; }
  void TakeByte(char c);
  void EndLine();
  void OpenLine();
  void BlankLine();
  // Returns true if `line` does not belong to the current block.
  bool BeginsBlock(std::string_view line) const;
  // Returns the block that `line` begins. REQUIRES: it does not begin code or mathematics.
  Block NewBlock(std::string_view line) const;
  void StartBlock(std::string_view line);
  void StartCode(Mode mode, std::string_view line);
  bool SplitBeforeTable(std::string_view line);
  void FinishBlock();
  void FinishGap(ListKind list);
  // Returns true if a row stays empty before the next block, which is an item of `list`.
  bool NeedsGap(ListKind list) const;
  void CutLongBlock();

  void TakeIndent();
  void TakeCodeByte();
  void EndCodeLine();
  void FlushFragment();
  void FinishFragment();
  Row CodeRow(std::string_view line, CodeState& state) const;

  // Finishes rows of the current block if there are too many. Called at offsets that depend only on the text.
  void Evaluate();
  void FinishPlainRows(bool all);
  RenderedBlock Render(const Block& block) const;
  void Add(Row row);

  RenderOptions options_;
  int max_tail_rows_;
  std::vector<Row> finished_;

  Mode mode_ = Mode::kNone;
  Block block_;
  std::optional<ItemContext> context_;
  std::string line_;  // the current line, until it is opened
  bool line_has_text_ = false;
  bool line_is_open_ = false;  // the current line is part of the block already
  bool carriage_return_ = false;
  bool blank_before_ = false;             // a blank line came after the last block
  ListKind last_list_ = ListKind::kNone;  // of the last block that was not inside an item
  bool is_first_row_ = true;
  int64_t num_links_ = 0;
  int64_t cost_ = 0;
  int64_t next_evaluation_ = 0;

  CodeFence fence_{};
  const CodeLanguage* language_ = nullptr;
  CodeState code_state_ = 0;
  std::string_view math_end_;
  bool is_first_code_line_ = false;
  size_t num_blank_code_lines_ = 0;
  bool is_fragment_ = false;  // the current line of code is too long to be drawn again
  std::string fragment_;
  SafeTextFilter fragment_filter_;
};

}  // namespace vllm::app
