#include "tokenizer/jinja/builtins/text_wrap.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "tokenizer/jinja/values/text.h"

namespace vllm::jinja {
namespace {

using Text = std::u32string_view;

bool IsBlank(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsLetter(char32_t c) { return c == '_' || IsAlpha(c); }
bool IsWord(char32_t c) { return IsLetter(c) || IsDigit(c); }
bool IsWordOrMark(char32_t c) { return IsWord(c) || (c < 0x80 && Text(U"!\"'&.,?").find(c) != Text::npos); }

// The end of a run of two hyphens or more that a word character follows, or `at`.
size_t DashEnd(Text text, size_t at) {
  const size_t end = std::min(text.find_first_not_of(U'-', at), text.size());
  return end - at >= 2 && end < text.size() && IsWord(text[end]) ? end : at;
}

// Whether a hyphenated word may be cut at `at`, which is behind a hyphen.
bool CanCutAfterHyphen(Text text, size_t at) {
  const auto letter = [&](size_t i) { return i < text.size() && IsLetter(text[i]); };
  const bool after_word = at >= 3 && letter(at - 2) && letter(at - 3);
  const bool after_initial = at >= 4 && letter(at - 2) && text[at - 3] == '-' && letter(at - 4);
  if (!after_word && !after_initial) return false;
  return letter(at) && (letter(at + 1) || (at + 1 < text.size() && text[at + 1] == '-' && letter(at + 2)));
}

// The end of the word that starts at `begin`: before a blank or an em-dash between words, or behind a hyphen.
size_t WordEnd(Text text, size_t begin) {
  for (size_t end = begin + 1; end < text.size(); ++end) {
    if (IsBlank(text[end])) return end;
    if (end - begin > 1 && text[end - 1] == '-' && CanCutAfterHyphen(text, end)) return end;
    if (IsWordOrMark(text[end - 1]) && DashEnd(text, end) > end) return end;
  }
  return text.size();
}

// The pieces that lines are made of: TextWrapper.wordsep_re, or wordsep_simple_re.
std::deque<Text> Pieces(Text text, bool break_on_hyphens) {
  std::deque<Text> pieces;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = begin;
    if (IsBlank(text[begin])) {
      while (end < text.size() && IsBlank(text[end])) ++end;
    } else if (!break_on_hyphens) {
      while (end < text.size() && !IsBlank(text[end])) ++end;
    } else {
      end = begin > 0 && IsWordOrMark(text[begin - 1]) ? DashEnd(text, begin) : begin;
      if (end == begin) end = WordEnd(text, begin);
    }
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

bool IsAllSpace(Text text) { return std::all_of(text.begin(), text.end(), IsSpace); }

// As much of the first piece as goes into a line with `room` left, which may be the empty text; nothing when the piece
// has to wait for the next line.
std::optional<Text> TakeFromLongWord(std::deque<Text>& pieces, size_t room, bool line_is_empty,
                                     const WrapStyle& style) {
  const Text word = pieces.front();
  if (!style.break_long_words) {
    if (!line_is_empty) return std::nullopt;
    pieces.pop_front();
    return word;
  }
  size_t end = room;
  if (style.break_on_hyphens && word.size() > room) {
    const size_t hyphen = word.substr(0, room).rfind('-');
    // Behind the last hyphen, but not where there are only hyphens before it.
    if (hyphen != Text::npos && hyphen > 0 && word.find_first_not_of(U'-') < hyphen) end = hyphen + 1;
  }
  pieces.front() = word.substr(end);
  return word.substr(0, end);
}

}  // namespace

std::vector<std::string> WrapText(Budget& budget, std::string_view paragraph, const WrapStyle& style) {
  if (style.width <= 0) throw EvalError("wordwrap: invalid width " + std::to_string(style.width) + " (must be > 0)");
  const auto width = static_cast<size_t>(style.width);
  budget.SpendBytes(paragraph.size() * 32);
  budget.CheckRoom(paragraph.size() * (sizeof(char32_t) + sizeof(Text)));
  std::u32string text;
  for (size_t i = 0; i < paragraph.size();) text += NextCodePoint(paragraph, i);
  std::deque<Text> pieces = Pieces(text, style.break_on_hyphens);
  std::vector<std::string> lines;
  while (!pieces.empty()) {
    std::vector<Text> line;
    size_t length = 0;
    if (!lines.empty() && IsAllSpace(pieces.front())) pieces.pop_front();
    while (!pieces.empty() && length + pieces.front().size() <= width) {
      length += pieces.front().size();
      line.push_back(pieces.front());
      pieces.pop_front();
    }
    if (!pieces.empty() && pieces.front().size() > width) {
      if (const auto part = TakeFromLongWord(pieces, width - length, line.empty(), style)) line.push_back(*part);
    }
    if (!line.empty() && IsAllSpace(line.back())) line.pop_back();
    if (line.empty()) continue;
    budget.Spend(1 + line.size());
    std::string& out = lines.emplace_back();
    for (const Text piece : line) {
      for (const char32_t c : piece) AppendCodePoint(out, c);
    }
  }
  return lines;
}

}  // namespace vllm::jinja
