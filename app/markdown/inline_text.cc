#include "app/markdown/inline_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "app/terminal/text_width.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

// Characters that must not begin a row, and characters that must not end one.
constexpr std::u32string_view kClosing =
    U"!),.:;?]}\u00A2\u00B0\u2019\u201D\u2026\u2030\u3001\u3002\u3003\u3005\u3009\u300B\u300D\u300F\u3011\u3015\u3017"
    U"\u3019\u301B\u301E\u301F\u3041\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087\u308E\u30A1\u30A3\u30A5\u30A7"
    U"\u30A9\u30C3\u30E3\u30E5\u30E7\u30EE\u30FB\u30FC\u30FD\u30FE\uFF01\uFF05\uFF09\uFF0C\uFF0E\uFF1A\uFF1B\uFF1F"
    U"\uFF3D\uFF5D\uFF5E";
constexpr std::u32string_view kOpening =
    U"([{\u00A3\u00A5\u2018\u201C\u3008\u300A\u300C\u300E\u3010\u3014\u3016\u3018\u301A\u301D\uFF04\uFF08\uFF3B\uFF5B"
    U"\uFFE1\uFFE5";

bool IsIn(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

// CJK characters, between which a row may end. Hangul is not included: Korean separates words by spaces.
bool IsCjk(char32_t c) {
  return (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE4F) ||
         (c >= 0xFF00 && c <= 0xFFEF) || (c >= 0x20000 && c <= 0x3FFFD);
}

bool MayBreakBetween(char32_t before, char32_t after) {
  return (IsCjk(before) || IsCjk(after)) && !IsIn(kClosing, after) && !IsIn(kOpening, before);
}

}  // namespace

int MaxTextColumns(std::string_view text) {
  int columns = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t num_bytes = ClusterAt(text, i).num_bytes;
    columns += MaxClusterColumns(text.substr(i, num_bytes));
    i += num_bytes;
  }
  return columns;
}

void InlineText::AddSource(std::string_view untrusted, size_t source, const TextStyle& style) {
  // Most text is the same before and after the filter. Other text is added character by character, so that the source
  // of each one is known.
  SafeTextFilter filter = filter_;
  SafeText whole;
  filter.Feed(untrusted, whole);
  if (whole.view() == untrusted && untrusted.find('\t') == std::string_view::npos) {
    marks_.push_back({text_.view().size(), source, true, style, nullptr});
    text_ += whole;
    filter_ = filter;
    return;
  }
  for (size_t i = 0; i < untrusted.size();) {
    const size_t length = std::max<size_t>(1, tokenizer::DecodeUtf8(untrusted, i).length);
    AddGenerated(untrusted[i] == '\t' ? "    " : untrusted.substr(i, length), source + i, style);
    i += length;
  }
}

void InlineText::AddGenerated(std::string_view untrusted, size_t source, const TextStyle& style) {
  marks_.push_back({text_.view().size(), source, false, style, nullptr});
  filter_.Feed(untrusted, text_);
}

void InlineText::LinkFrom(size_t begin, std::shared_ptr<const RowLink> link) {
  for (auto mark = marks_.rbegin(); mark != marks_.rend() && mark->begin >= begin; ++mark) mark->link = link;
}

size_t InlineText::MarkAt(size_t position) const {
  const auto after = std::upper_bound(marks_.begin(), marks_.end(), position,
                                      [](size_t p, const Mark& mark) { return p < mark.begin; });
  return static_cast<size_t>(after - marks_.begin()) - 1;
}

bool InlineText::DropBefore(size_t source) {
  if (source == 0 || marks_.empty() || marks_[0].source >= source) return false;
  size_t position = size();
  size_t first = marks_.size();
  for (size_t i = 0; i < marks_.size(); ++i) {
    const size_t end = i + 1 < marks_.size() ? marks_[i + 1].begin : size();
    const Mark& mark = marks_[i];
    if (mark.source >= source) {
      position = mark.begin;
      first = i;
      break;
    }
    if (mark.is_exact && mark.source + (end - mark.begin) > source) {
      position = mark.begin + (source - mark.source);
      first = i;
      break;
    }
  }
  std::vector<Mark> rest;
  for (size_t i = first; i < marks_.size(); ++i) {
    Mark mark = marks_[i];
    if (mark.begin < position) {
      mark.source += position - mark.begin;
      mark.begin = position;
    }
    mark.begin -= position;
    rest.push_back(std::move(mark));
  }
  text_ = text_.Part(position, size());
  marks_ = std::move(rest);
  return true;
}

void InlineText::Wrap(int columns, const std::function<void(size_t, size_t)>& emit) const {
  const std::string_view text = text_.view();
  const auto emit_trimmed = [&](size_t begin, size_t end) {
    while (end > begin && text[end - 1] == ' ') --end;
    emit(begin, end);
  };
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t row_begin = 0;
  size_t next_begin = kNone;  // where the next row may begin
  int column = 0;
  int word_column = 0;  // the column after next_begin
  char32_t previous = 0;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\n') {
      emit_trimmed(row_begin, i);
      row_begin = ++i;
      next_begin = kNone;
      column = word_column = 0;
      previous = 0;
      continue;
    }
    const size_t num_bytes = ClusterAt(text, i).num_bytes;
    const char32_t current = tokenizer::CodePointAt(text, i).value;
    if (current == ' ') {
      // A space never begins a row of a wrapped line.
      ++column;
      next_begin = i + 1;
      word_column = 0;
      previous = current;
      i += num_bytes;
      continue;
    }
    const int width = MaxClusterColumns(text.substr(i, num_bytes));
    if (i > row_begin && previous != ' ' && MayBreakBetween(previous, current)) {
      next_begin = i;
      word_column = 0;
    }
    if (column + width > columns && i > row_begin) {
      if (next_begin != kNone && next_begin > row_begin) {
        emit_trimmed(row_begin, next_begin);
        row_begin = next_begin;
        column = word_column;
      } else {
        emit_trimmed(row_begin, i);
        row_begin = i;
        column = 0;
      }
      next_begin = kNone;
      word_column = column;
      if (column + width > columns && i > row_begin) continue;  // the word is longer than a row
    }
    column += width;
    word_column += width;
    previous = current;
    i += num_bytes;
  }
  emit_trimmed(row_begin, text.size());
}

void InlineText::AppendTo(Row& row, size_t begin, size_t end) const {
  if (marks_.empty()) return;
  size_t i = MarkAt(begin);
  if (row.source == Row::kNoSource && begin < size()) {
    const Mark& mark = marks_[i];
    if (mark.begin == begin) {
      row.source = mark.source;
    } else if (mark.is_exact) {
      row.source = mark.source + (begin - mark.begin);
    }
  }
  while (begin < end) {
    const size_t mark_end = i + 1 < marks_.size() ? std::min(marks_[i + 1].begin, end) : end;
    if (mark_end > begin) row.Add(text_.Part(begin, mark_end), marks_[i].style, marks_[i].link);
    begin = std::max(begin, mark_end);
    ++i;
  }
}

int InlineText::MaxLineColumns() const {
  int widest = 0;
  size_t begin = 0;
  while (begin <= size()) {
    const size_t end = std::min(view().find('\n', begin), size());
    widest = std::max(widest, MaxTextColumns(view().substr(begin, end - begin)));
    begin = end + 1;
  }
  return widest;
}

}  // namespace vllm::app
