#include "app/markdown/markdown_renderer.h"

#include <algorithm>
#include <utility>

#include "app/terminal/text_width.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

// A line is classified when it has this many bytes or ends. All that decides what a line begins comes earlier.
constexpr size_t kOpenLineBytes = 64;
// A code fence with its info string and the second line of a table are classified at their end, up to this length.
constexpr size_t kMaxFenceBytes = 1000;
// The rows are counted again when this many bytes per free row have arrived; each line counts as one row at least.
constexpr int64_t kBytesPerRow = 16;
constexpr size_t kMaxTableColumns = 64;
// Links of one text are numbered, and each block gets this many numbers.
constexpr int64_t kMaxLinksPerBlock = 4096;

// Returns true if code begins in this line, after list markers.
bool IsItemWithFence(std::string_view line) {
  const ItemText item = TextAfterMarkers(line);
  return item.column > 0 && ParseFence(item.text);
}

// Returns true if the line ends any paragraph, quote or table, and any item unless it is indented.
bool InterruptsText(std::string_view line) {
  return ParseFence(line) || IsAtxHeading(line) || IsQuote(line) || IsThematicBreak(line) ||
         !MathBlockEnd(line).empty();
}

}  // namespace

MarkdownRenderer::MarkdownRenderer(const RenderOptions& options, int max_tail_rows)
    : options_(options), max_tail_rows_(std::max(1, max_tail_rows)) {}

void MarkdownRenderer::Resize(int columns, int screen_columns, int max_tail_rows) {
  options_.columns = columns;
  options_.screen_columns = screen_columns;
  max_tail_rows_ = std::max(1, max_tail_rows);
  block_.table_widths.reset();
  next_evaluation_ = 0;
}

std::vector<Row> MarkdownRenderer::TakeFinished() {
  FlushFragment();
  return std::exchange(finished_, {});
}

void MarkdownRenderer::Add(Row row) {
  is_first_row_ = false;
  finished_.push_back(std::move(row));
}

void MarkdownRenderer::Feed(std::string_view untrusted) {
  for (const char c : untrusted) {
    if (std::exchange(carriage_return_, c == '\r') && c != '\n') TakeByte('\r');
    if (c != '\r') TakeByte(c);
  }
}

void MarkdownRenderer::Finish() {
  if (std::exchange(carriage_return_, false)) TakeByte('\r');
  if (!line_.empty() || line_is_open_ || is_fragment_) EndLine();
  if (mode_ == Mode::kBlock) FinishBlock();
  FlushFragment();
  std::vector<Row> rows = std::exchange(finished_, {});
  const int64_t num_links = num_links_;
  *this = MarkdownRenderer(options_, max_tail_rows_);
  finished_ = std::move(rows);
  num_links_ = num_links;
}

void MarkdownRenderer::TakeByte(char c) {
  if (c == '\n') {
    EndLine();
    return;
  }
  if (is_fragment_) {
    fragment_ += c;
    return;
  }
  if (line_is_open_) {
    block_.source += c;
    if (++cost_ >= next_evaluation_) Evaluate();
    if (mode_ == Mode::kBlock && block_.source.size() > 2 * kMaxBlockBytes) {
      FinishBlock();
      mode_ = Mode::kPlain;
    }
    return;
  }
  // White space at the beginning of a line counts up to a limit, except in code.
  if (!IsCode() && !line_has_text_ && line_.size() >= kMaxFenceBytes && (c == ' ' || c == '\t')) return;
  line_ += c;
  if (!line_has_text_ && c != ' ' && c != '\t') {
    line_has_text_ = true;
    if (mode_ == Mode::kIndented) TakeIndent();
  }
  if (IsCode()) {  // TakeIndent may end the code
    TakeCodeByte();
  } else if (line_has_text_ && line_.size() >= kOpenLineBytes) {
    // These lines are classified as a whole.
    const bool waits =
        line_.size() < kMaxFenceBytes && (MayBecomeFence(TextAfterMarkers(line_).text) || TableColumns(line_) > 0);
    if (!waits) OpenLine();
  }
}

void MarkdownRenderer::EndLine() {
  switch (mode_) {
    case Mode::kFence:
    case Mode::kIndented:
    case Mode::kMath:
      EndCodeLine();
      return;
    case Mode::kPlain:
      FinishPlainRows(true);
      mode_ = Mode::kNone;
      line_is_open_ = false;
      return;
    case Mode::kNone:
    case Mode::kBlock:
      break;
  }
  if (!line_is_open_) {
    if (!line_has_text_) {
      line_.clear();
      BlankLine();
      return;
    }
    OpenLine();
    if (!line_is_open_) {
      // The line has begun code or mathematics. A fence has no text.
      if (line_has_text_) EndCodeLine();
      return;
    }
  }
  line_is_open_ = false;
  block_.source += '\n';
  cost_ += kBytesPerRow;
  if (++block_.num_lines == 2 && block_.kind == Kind::kTable) block_.head_bytes = block_.source.size();
  if (block_.kind == Kind::kSingleLine) {
    FinishBlock();
    return;
  }
  if (cost_ >= next_evaluation_) Evaluate();
  if (block_.source.size() > kMaxBlockBytes) CutLongBlock();
}

void MarkdownRenderer::BlankLine() {
  if (mode_ == Mode::kBlock && block_.kind == Kind::kItem) {
    // The item may continue after it. Several blank lines are like one.
    if (!block_.has_blank_line) block_.source += '\n';
    block_.has_blank_line = true;
    return;
  }
  if (mode_ == Mode::kBlock) FinishBlock();
  blank_before_ = true;
}

bool MarkdownRenderer::BeginsBlock(std::string_view line) const {
  if (mode_ != Mode::kBlock) return true;
  const std::optional<ListMarker> marker = ParseListMarker(line);
  switch (block_.kind) {
    case Kind::kItem:
      if (ParseFence(line) || IsItemWithFence(line)) return true;
      if (IndentColumns(line) >= block_.content_column) return false;
      return marker || block_.has_blank_line || InterruptsText(line);
    case Kind::kQuote:
      if (IsQuote(line)) return false;
      return marker || InterruptsText(line);
    case Kind::kTable:
      return marker || InterruptsText(line);
    case Kind::kParagraph:
      if (IsSetextUnderline(line) && !ParseFence(line)) return false;
      return (marker && marker->can_interrupt && IndentColumns(line) <= 3) || InterruptsText(line) ||
             TableColumns(line) > kMaxTableColumns;
    case Kind::kSingleLine:
      return true;
  }
  return true;
}

MarkdownRenderer::Block MarkdownRenderer::NewBlock(std::string_view line) const {
  Block block;
  block.position.first_link = num_links_;
  const int indent = IndentColumns(line);
  if (context_ && indent >= context_->content_column) {
    block.kind = Kind::kItem;
    block.strip = block.content_column = context_->content_column;
    block.position.indent = block.text_indent = context_->indent;
    return block;
  }
  if (const std::optional<ListMarker> marker = ParseListMarker(line)) {
    block.kind = Kind::kItem;
    block.strip = indent;
    block.content_column = marker->content_column;
    block.list = marker->is_ordered ? ListKind::kOrdered : ListKind::kBullets;
    block.position.indent = indent;
    block.text_indent = marker->content_column;
  } else if (IsAtxHeading(line) || IsThematicBreak(line)) {
    block.kind = Kind::kSingleLine;
  } else if (IsQuote(line)) {
    block.kind = Kind::kQuote;
  }
  return block;
}

void MarkdownRenderer::OpenLine() {
  const std::string line = std::exchange(line_, {});
  line_has_text_ = false;
  if (BeginsBlock(line)) {
    if (mode_ == Mode::kBlock) FinishBlock();
    StartBlock(line);
    return;
  }
  if (block_.kind == Kind::kParagraph && TableColumns(line) > 0 && SplitBeforeTable(line)) {
    block_.kind = Kind::kTable;
    block_.head_bytes = kMaxBlockBytes;  // until the line ends
  }
  line_is_open_ = true;
  block_.last_line = block_.source.size();
  // Lines of an item that have less white space continue its paragraph.
  block_.source += StripIndent(line, block_.strip);
  block_.has_blank_line = false;
  cost_ += static_cast<int64_t>(line.size());
  if (cost_ >= next_evaluation_) Evaluate();
}

// `line` may be the second line of a table, after the last line of the block. Finishes the lines before it, because
// md4c reads a table only at the beginning of a paragraph. Returns false if it is not a table.
bool MarkdownRenderer::SplitBeforeTable(std::string_view line) {
  const std::string head_line = block_.source.substr(block_.last_line);
  if (head_line.find('|') == std::string::npos || block_.position.start > block_.last_line) return false;
  if (block_.num_lines > 1) {
    // Only a line with as many cells as the delimiter row is a header.
    if (CountCells(std::string_view(head_line).substr(0, head_line.find('\n'))) != TableColumns(line)) return false;
    block_.source.resize(block_.last_line);
    const Block table = NewBlock(head_line);
    FinishBlock();
    block_ = table;
    block_.source = head_line;
    block_.position.first_link = num_links_;
    block_.num_lines = 1;
    mode_ = Mode::kBlock;
    cost_ = next_evaluation_ = 0;
  }
  return true;
}

void MarkdownRenderer::StartBlock(std::string_view line) {
  const int indent = IndentColumns(line);
  const bool in_item = context_ && indent >= context_->content_column;
  if (!in_item) context_.reset();
  if (ParseFence(line)) {
    StartCode(Mode::kFence, line);
    return;
  }
  if (!MathBlockEnd(line).empty()) {
    StartCode(Mode::kMath, line);
    return;
  }
  if (indent >= 4 && !in_item && !ParseListMarker(line)) {
    StartCode(Mode::kIndented, line);
    return;
  }
  if (IsItemWithFence(line)) {
    // Code is not indented, so the markers get their own row.
    const ItemText item = TextAfterMarkers(line);
    StartBlock(line.substr(0, line.size() - item.text.size()));
    FinishBlock();
    StartCode(Mode::kFence, std::string(static_cast<size_t>(item.column), ' ') + std::string(item.text));
    return;
  }
  block_ = NewBlock(line);
  FinishGap(block_.list);
  if (!in_item) last_list_ = block_.list;
  mode_ = Mode::kBlock;
  block_.source = StripIndent(line, block_.strip);
  line_is_open_ = true;
  cost_ = static_cast<int64_t>(line.size());
  next_evaluation_ = kBytesPerRow * max_tail_rows_;
  if (block_.kind == Kind::kItem) context_ = ItemContext{block_.content_column, block_.text_indent};
}

bool MarkdownRenderer::NeedsGap(ListKind list) const {
  return blank_before_ && !is_first_row_ && (list == ListKind::kNone || list != last_list_);
}

void MarkdownRenderer::FinishGap(ListKind list) {
  if (NeedsGap(list)) Add(Row());
  blank_before_ = false;
}

RenderedBlock MarkdownRenderer::Render(const Block& block) const {
  BlockPosition position = block.position;
  position.table_widths = block.table_widths ? &*block.table_widths : nullptr;
  return RenderBlock(block.source, position, options_);
}

void MarkdownRenderer::FinishBlock() {
  for (Row& row : Render(block_).rows) Add(std::move(row));
  blank_before_ = block_.has_blank_line;
  num_links_ += kMaxLinksPerBlock;
  block_ = Block();
  mode_ = Mode::kNone;
}

void MarkdownRenderer::CutLongBlock() {
  if (block_.kind == Kind::kTable && block_.head_bytes <= kMaxBlockBytes / 2) {
    RenderedBlock rendered = Render(block_);
    for (Row& row : rendered.rows) Add(std::move(row));
    block_.table_widths = std::move(rendered.table_widths);
    block_.source.resize(block_.head_bytes);
    block_.position.start = block_.last_line = block_.source.size();
    cost_ = 0;
    next_evaluation_ = kBytesPerRow * max_tail_rows_;
  } else {
    FinishBlock();
  }
}

void MarkdownRenderer::Evaluate() {
  cost_ = 0;
  if (mode_ == Mode::kPlain) {
    FinishPlainRows(false);
    next_evaluation_ = kBytesPerRow * max_tail_rows_;
    return;
  }
  RenderedBlock rendered = Render(block_);
  std::vector<Row>& rows = rendered.rows;
  auto num_rows = static_cast<int>(rows.size());
  if (num_rows > max_tail_rows_) {
    // Half of the limit stays, so that rows are seldom finished while a marker before them is still open.
    for (int k = num_rows - std::max(1, max_tail_rows_ / 2); k > 0; --k) {
      const size_t source = rows[static_cast<size_t>(k)].source;
      if (source == Row::kNoSource || source <= block_.position.start) continue;
      for (int i = 0; i < k; ++i) Add(std::move(rows[static_cast<size_t>(i)]));
      block_.position.start = source;
      if (rendered.has_table && block_.kind == Kind::kTable) block_.table_widths = std::move(rendered.table_widths);
      num_rows -= k;
      break;
    }
  }
  next_evaluation_ = kBytesPerRow * std::max(1, max_tail_rows_ - num_rows);
}

void MarkdownRenderer::FinishPlainRows(bool all) {
  std::vector<Row> rows = RenderPlainText(block_.source, 0, options_);
  size_t num_finished = rows.size();
  if (!all) {
    // The last row may grow.
    num_finished = rows.empty() ? 0 : rows.size() - 1;
    while (num_finished > 0 && rows[num_finished].source == Row::kNoSource) --num_finished;
    if (num_finished == 0 && block_.source.size() < kMaxBlockBytes) return;
    if (num_finished == 0) all = true;
  }
  const size_t rest = all ? block_.source.size() : rows[num_finished].source;
  if (all) num_finished = rows.size();
  for (size_t i = 0; i < num_finished; ++i) Add(std::move(rows[i]));
  block_.source.erase(0, rest);
}

// Code and mathematics: lines that are shown unchanged.

void MarkdownRenderer::StartCode(Mode mode, std::string_view line) {
  FinishGap(ListKind::kNone);
  if (!context_) last_list_ = ListKind::kNone;
  mode_ = mode;
  code_state_ = 0;
  language_ = nullptr;
  num_blank_code_lines_ = 0;
  line_is_open_ = false;
  if (mode == Mode::kFence) {
    fence_ = *ParseFence(line);
    language_ = FindCodeLanguage(fence_.info);
    fence_.info = {};
    Add(RenderFence(Trimmed(line), options_));
    return;
  }
  fence_ = CodeFence{' ', 0, mode == Mode::kMath ? 0 : 4, {}};
  math_end_ = MathBlockEnd(line);
  is_first_code_line_ = true;
  line_ = line;
  line_has_text_ = true;
}

// The current line of indented code has text: it is code, or ends the code.
void MarkdownRenderer::TakeIndent() {
  const size_t num_blank_lines = std::exchange(num_blank_code_lines_, 0);
  if (IndentColumns(line_) < 4) {
    mode_ = Mode::kNone;
    blank_before_ = num_blank_lines > 0;
    return;
  }
  for (size_t i = 0; i < num_blank_lines; ++i) {
    Row row;
    row.is_code = true;
    Add(std::move(row));
  }
}

Row MarkdownRenderer::CodeRow(std::string_view line, CodeState& state) const {
  return RenderCodeLine(StripIndent(line, fence_.indent), language_, state, options_);
}

void MarkdownRenderer::TakeCodeByte() {
  constexpr size_t kBytesPerCheck = 16;
  if (line_.size() % kBytesPerCheck != 0 || static_cast<int>(line_.size()) < options_.screen_columns) return;
  CodeState state = code_state_;
  const Row row = CodeRow(line_, state);
  const int height = RowHeight(row, options_.screen_columns);
  if (line_.size() <= kMaxHighlightedLineBytes && height <= max_tail_rows_ &&
      (height == 1 || !HasAmbiguousWidth(row.Text().view()))) {
    return;
  }
  // Text of a line that is too high to be drawn again is finished as it comes.
  is_fragment_ = true;
  fragment_ = StripIndent(line_, fence_.indent);
  line_.clear();
  FlushFragment();
}

// Keeps the last character back, because combining characters may follow it.
void MarkdownRenderer::FlushFragment() {
  constexpr size_t kMaxKeptBytes = 64;
  std::string kept;
  if (is_fragment_ && !fragment_.empty()) {
    size_t end = fragment_.size();
    while (end > 0 && fragment_.size() - end < 3 && tokenizer::IsUtf8Continuation(fragment_[end - 1])) --end;
    if (end > 0 && static_cast<unsigned char>(fragment_[end - 1]) >= 0xC0) --end;
    if (end > 0) end = PreviousCluster(fragment_, end);
    if (fragment_.size() - end <= kMaxKeptBytes) {
      kept = fragment_.substr(end);
      fragment_.resize(end);
    }
  }
  if (!fragment_.empty()) FinishFragment();
  fragment_ = std::move(kept);
}

void MarkdownRenderer::FinishFragment() {
  Row row;
  row.is_code = true;
  row.ends_line = false;
  SafeText text;
  fragment_filter_.Feed(fragment_, text);
  fragment_.clear();
  row.Add(std::move(text), {});
  if (!row.spans.empty()) Add(std::move(row));
}

void MarkdownRenderer::EndCodeLine() {
  const std::string line = std::exchange(line_, {});
  line_has_text_ = false;
  if (std::exchange(is_fragment_, false)) {
    FlushFragment();
    SafeText text;
    fragment_filter_.Flush(text);
    Row row;
    row.is_code = true;
    row.Add(std::move(text), {});
    Add(std::move(row));
    return;
  }
  if (mode_ == Mode::kFence && ClosesFence(line, fence_)) {
    Add(RenderFence(Trimmed(line), options_));
    mode_ = Mode::kNone;
    return;
  }
  if (mode_ != Mode::kFence && IsBlankLine(line)) {
    if (mode_ == Mode::kIndented) {
      ++num_blank_code_lines_;
    } else {
      mode_ = Mode::kNone;
      blank_before_ = true;
    }
    return;
  }
  Add(CodeRow(line, code_state_));
  if (mode_ == Mode::kMath) {
    const size_t begin = std::exchange(is_first_code_line_, false) ? line.find_first_not_of(" \t") + 2 : 0;
    if (line.find(math_end_, begin) != std::string::npos) mode_ = Mode::kNone;
  }
}

std::vector<Row> MarkdownRenderer::Tail() const {
  std::vector<Row> rows;
  if (is_fragment_) return rows;
  if (mode_ == Mode::kPlain) return RenderPlainText(block_.source, 0, options_);
  if (IsCode()) {
    if (!line_has_text_) return rows;
    CodeState state = code_state_;
    Row row = CodeRow(line_, state);
    const SafeText text = row.Text();
    if (RowHeight(row, options_.screen_columns) > 1 && HasAmbiguousWidth(text.view())) return rows;
    rows.push_back(std::move(row));
    return rows;
  }
  if (!line_has_text_ || line_is_open_) {
    return mode_ == Mode::kBlock ? Render(block_).rows : rows;
  }
  if (!BeginsBlock(line_)) {
    // A single dash may begin an item. It must not turn the paragraph into a heading until then.
    if (block_.kind == Kind::kParagraph && IsSetextUnderline(line_) && line_.size() < 3) return Render(block_).rows;
    Block block = block_;
    block.source += StripIndent(line_, block_.strip);
    return Render(block).rows;
  }
  if (mode_ == Mode::kBlock) rows = Render(block_).rows;
  Block next = NewBlock(line_);
  const bool has_blank = mode_ == Mode::kBlock ? block_.has_blank_line : blank_before_;
  const bool is_next_item = next.list != ListKind::kNone && next.list == last_list_;
  if (has_blank && (!is_first_row_ || !rows.empty()) && !is_next_item) rows.emplace_back();
  const std::string_view item_text = TextAfterMarkers(line_).text;
  const bool is_fence = MayBecomeFence(item_text);
  const std::string_view code = is_fence ? item_text : MathBlockEnd(line_).empty() ? std::string_view() : line_;
  // Everything before the code: the markers of its item, if any.
  const std::string_view source = std::string_view(line_).substr(0, line_.size() - code.size());
  if (!IsBlankLine(source)) {
    next.source = StripIndent(source, next.strip);
    for (Row& row : Render(next).rows) rows.push_back(std::move(row));
  }
  if (!code.empty()) rows.push_back(RenderFence(Trimmed(code), options_));
  return rows;
}

}  // namespace vllm::app
