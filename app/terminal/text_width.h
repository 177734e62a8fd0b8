// Widths of text on a terminal, in columns, by extended grapheme cluster (Unicode Standard Annex 29, utf8proc). All
// code that draws text uses these functions, so that a line is measured in one way. Pure functions; any thread.
//
// A cluster is as wide as its widest code point, because terminals disagree about emoji sequences: some draw a family
// as one emoji of two columns, some as four. After a cluster of several code points the real cursor may be elsewhere.
#pragma once

#include <cstddef>
#include <string_view>

namespace vllm::app {

struct TextCluster {
  size_t num_bytes;
  int columns;     // 0, 1 or 2; 0 for control characters, including tab and line feed
  bool is_single;  // the cluster is one code point
};

// Returns the cluster that begins at `position`. Each byte that is not part of valid UTF-8 is a cluster of one column.
// REQUIRES: position < text.size(), and a cluster begins at `position`.
TextCluster ClusterAt(std::string_view text, size_t position);

// Returns the largest number of columns that any terminal uses for this cluster: the sum of the columns of its code
// points, where a regional indicator has 2, and at least 2 after a variation selector 16. Rows that must not wrap are
// measured in this way.
int MaxClusterColumns(std::string_view cluster);

// Returns the position where the cluster that contains or ends at `position` begins. O(position) within the line of
// text. REQUIRES: 0 < position <= text.size().
size_t PreviousCluster(std::string_view text, size_t position);

// Returns the sum of the columns of the clusters of `text`.
int TextColumns(std::string_view text);

// Returns the longest beginning of `text` that is at most `max_columns` wide and ends between two clusters.
std::string_view FitColumns(std::string_view text, int max_columns);

}  // namespace vllm::app
