#include "app/terminal/text_width.h"

#include <utf8proc.h>

#include <algorithm>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

bool IsRegionalIndicator(char32_t c) { return c >= 0x1F1E6 && c <= 0x1F1FF; }

int CodePointColumns(char32_t c) { return c < 0x20 ? 0 : c < 0x7F ? 1 : utf8proc_charwidth(static_cast<int32_t>(c)); }

}  // namespace

TextCluster ClusterAt(std::string_view text, size_t position) {
  const tokenizer::Utf8Step first = tokenizer::DecodeUtf8(text, position);
  if (first.kind != tokenizer::Utf8Step::Kind::kValid) return {1, 1, true};
  TextCluster cluster{first.length, CodePointColumns(first.code_point), true};
  // Most text is ASCII, in which only CR LF is a cluster of two characters.
  const auto is_ascii = [&](size_t i) { return i >= text.size() || static_cast<unsigned char>(text[i]) < 0x80; };
  const size_t second = position + first.length;
  if (first.code_point < 0x80 && is_ascii(second)) {
    if (first.code_point == '\r' && second < text.size() && text[second] == '\n') return {2, 0, false};
    return cluster;
  }
  int32_t state = 0;
  char32_t previous = first.code_point;
  for (size_t next = second; next < text.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(text, next);
    if (step.kind != tokenizer::Utf8Step::Kind::kValid) break;
    if (utf8proc_grapheme_break_stateful(static_cast<int32_t>(previous), static_cast<int32_t>(step.code_point),
                                         &state)) {
      break;
    }
    // Two regional indicators are a flag.
    const bool is_flag = IsRegionalIndicator(previous) && IsRegionalIndicator(step.code_point);
    cluster.columns = is_flag ? 2 : std::max(cluster.columns, CodePointColumns(step.code_point));
    cluster.is_single = false;
    previous = step.code_point;
    next += step.length;
    cluster.num_bytes = next - position;
  }
  return cluster;
}

int MaxClusterColumns(std::string_view cluster) {
  constexpr char32_t kEmojiSelector = 0xFE0F;
  int columns = 0;
  bool has_selector = false;
  for (size_t i = 0; i < cluster.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(cluster, i);
    const bool is_valid = step.kind == tokenizer::Utf8Step::Kind::kValid;
    columns += !is_valid                              ? 1
               : IsRegionalIndicator(step.code_point) ? 2
                                                      : std::max(0, CodePointColumns(step.code_point));
    has_selector = has_selector || (is_valid && step.code_point == kEmojiSelector);
    i += std::max<size_t>(1, step.length);
  }
  return has_selector ? std::max(columns, 2) : columns;
}

size_t PreviousCluster(std::string_view text, size_t position) {
  // A cluster can be found only from its beginning. Clusters never extend over a line feed, except CR LF.
  const size_t line_feed = position < 2 ? std::string_view::npos : text.rfind('\n', position - 2);
  size_t begin = line_feed == std::string_view::npos ? 0 : line_feed + 1;
  while (true) {
    const size_t end = begin + ClusterAt(text, begin).num_bytes;
    if (end >= position) return begin;
    begin = end;
  }
}

int TextColumns(std::string_view text) {
  int columns = 0;
  for (size_t i = 0; i < text.size();) {
    const TextCluster cluster = ClusterAt(text, i);
    columns += cluster.columns;
    i += cluster.num_bytes;
  }
  return columns;
}

std::string_view FitColumns(std::string_view text, int max_columns) {
  int columns = 0;
  size_t end = 0;
  while (end < text.size()) {
    const TextCluster cluster = ClusterAt(text, end);
    if (columns + cluster.columns > max_columns) break;
    columns += cluster.columns;
    end += cluster.num_bytes;
  }
  return text.substr(0, end);
}

}  // namespace vllm::app
