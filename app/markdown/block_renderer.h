// RenderBlock: renders the Markdown source of one block with md4c: a paragraph, a heading, a block quote, a table, or
// an item of a list with everything inside it. A pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "app/markdown/line_renderer.h"
#include "app/markdown/row.h"
#include "app/markdown/table_layout.h"

namespace vllm::app {

struct BlockPosition {
  size_t start = 0;        // the source before this offset has been rendered before and is left out
  int indent = 0;          // columns before the rows of text
  int64_t first_link = 0;  // the number of the first link
  // If not null, the widths of the columns of a table whose first rows have been rendered before.
  const ColumnWidths* table_widths = nullptr;
};

struct RenderedBlock {
  std::vector<Row> rows;
  ColumnWidths table_widths;  // of the last table
  bool has_table = false;
};

// The result does not depend on text outside `source`. Rows of code are not indented, so that a copy is exact. md4c
// needs time linear in the size only for normal text, so callers pass at most about 2 * kMaxBlockBytes.
RenderedBlock RenderBlock(std::string_view source, const BlockPosition& position, const RenderOptions& options);

inline constexpr size_t kMaxBlockBytes = 8 << 10;

}  // namespace vllm::app
