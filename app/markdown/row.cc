#include "app/markdown/row.h"

#include <algorithm>
#include <utility>

#include "app/terminal/text_width.h"

namespace vllm::app {

void Row::Add(SafeText text, const TextStyle& style, std::shared_ptr<const RowLink> link) {
  if (text.empty()) return;
  RowSpan span{std::move(text), style, std::move(link)};
  if (!spans.empty() && spans.back().HasLookOf(span)) {
    spans.back().text += span.text;
  } else {
    spans.push_back(std::move(span));
  }
}

SafeText Row::Text() const {
  SafeText text;
  for (const RowSpan& span : spans) text += span.text;
  return text;
}

int RowHeight(const Row& row, int columns) {
  const SafeText safe = row.Text();
  const std::string_view text = safe.view();
  int height = 1;
  int column = 0;
  for (size_t i = 0; i < text.size();) {
    const TextCluster cluster = ClusterAt(text, i);
    if (text[i] == '\t') {
      column = std::min((column / 8 + 1) * 8, columns - 1);
    } else {
      if (column + cluster.columns > columns) {
        ++height;
        column = 0;
      }
      column += cluster.columns;
    }
    i += cluster.num_bytes;
  }
  return height;
}

bool HasAmbiguousWidth(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const TextCluster cluster = ClusterAt(text, i);
    if (!cluster.is_single && MaxClusterColumns(text.substr(i, cluster.num_bytes)) != cluster.columns) return true;
    i += cluster.num_bytes;
  }
  return false;
}

}  // namespace vllm::app
