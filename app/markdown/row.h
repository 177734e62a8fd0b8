// Row: one row of rendered Markdown, which a frame writes to the terminal. A plain value; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "app/terminal/link_uri.h"
#include "app/terminal/safe_text.h"
#include "app/terminal/styled_text.h"

namespace vllm::app {

struct RowLink {
  LinkUri uri;
  int64_t number;  // the same for all pieces of one link
};

struct RowSpan {
  SafeText text;  // without line feeds
  TextStyle style;
  std::shared_ptr<const RowLink> link;  // null: not a link

  bool HasLookOf(const RowSpan& other) const {
    return style == other.style &&
           (link == nullptr ? -1 : link->number) == (other.link == nullptr ? -1 : other.link->number);
  }
  bool operator==(const RowSpan& other) const { return HasLookOf(other) && text.view() == other.text.view(); }
};

struct Row {
  static constexpr size_t kNoSource = static_cast<size_t>(-1);

  std::vector<RowSpan> spans;
  bool is_code = false;  // neither wrapped nor trimmed
  // False for a part of a long line of code that the next row continues on the same line.
  bool ends_line = true;
  // Where the row begins in the source of its block, or kNoSource.
  size_t source = kNoSource;

  bool operator==(const Row& other) const {
    return is_code == other.is_code && ends_line == other.ends_line && spans == other.spans;
  }
  // Appends text, to the last span if it looks the same.
  void Add(SafeText text, const TextStyle& style, std::shared_ptr<const RowLink> link = nullptr);
  // Returns the text of the row without styles.
  SafeText Text() const;
};

// Returns the number of screen rows that `row` needs on a screen with this many columns, where the terminal wraps it.
int RowHeight(const Row& row, int columns);
// Returns true if terminals may disagree about the width of `text`.
bool HasAmbiguousWidth(std::string_view text);

}  // namespace vllm::app
