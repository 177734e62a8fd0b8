// InlineText: the text of a paragraph, a heading or a table cell with its styles and links, and where each character
// comes from in the source. A line feed is a line break. Wraps to rows. A plain value; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "app/markdown/row.h"

namespace vllm::app {

class InlineText {
 public:
  // Appends text that begins at `source` of the source of the block.
  void AddSource(std::string_view untrusted, size_t source, const TextStyle& style);
  // Appends text that is not in the source, or is written in another way there. It counts as the text at `source`.
  void AddGenerated(std::string_view untrusted, size_t source, const TextStyle& style);

  bool empty() const { return text_.empty(); }
  size_t size() const { return text_.view().size(); }
  std::string_view view() const { return text_.view(); }
  // Makes the text from position `begin` to the end a link.
  void LinkFrom(size_t begin, std::shared_ptr<const RowLink> link);

  // Removes the text whose source is before `source`. Returns true if there was any.
  bool DropBefore(size_t source);

  // Calls `emit` with each row of at most `columns` columns, as the beginning and end of its text. Breaks lines after
  // spaces, and before and after CJK characters except where punctuation forbids it; cuts words that are longer than
  // a row. Calls `emit` once for an empty text.
  void Wrap(int columns, const std::function<void(size_t begin, size_t end)>& emit) const;
  // Appends the text from `begin` to `end` to `row`. A row without a source gets the source of `begin`.
  void AppendTo(Row& row, size_t begin, size_t end) const;

  // Returns the columns of the widest line.
  int MaxLineColumns() const;

 private:
  // The style of the text from `begin` to the next mark.
  struct Mark {
    size_t begin;
    size_t source;
    bool is_exact;  // the bytes up to the next mark are those of the source
    TextStyle style;
    std::shared_ptr<const RowLink> link;
  };
  size_t MarkAt(size_t position) const;

  SafeText text_;
  SafeTextFilter filter_;
  std::vector<Mark> marks_;
};

// Returns the sum of MaxClusterColumns of `text`.
int MaxTextColumns(std::string_view text);

}  // namespace vllm::app
