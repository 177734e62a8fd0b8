#include "app/markdown/source_line.h"

#include <algorithm>
#include <array>

namespace vllm::app {
namespace {

constexpr std::string_view kBlanks = " \t\r";

bool ConsistsOf(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

}  // namespace

bool IsBlankLine(std::string_view line) { return ConsistsOf(line, kBlanks); }

std::string_view Trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
}

int IndentColumns(std::string_view line) {
  int columns = 0;
  for (const char c : line) {
    if (c == ' ') {
      ++columns;
    } else if (c == '\t') {
      columns = (columns / 4 + 1) * 4;
    } else {
      break;
    }
  }
  return columns;
}

std::string_view StripIndent(std::string_view line, int columns) {
  int column = 0;
  size_t i = 0;
  while (i < line.size() && column < columns && (line[i] == ' ' || line[i] == '\t')) {
    column = line[i] == ' ' ? column + 1 : (column / 4 + 1) * 4;
    ++i;
  }
  return line.substr(i);
}

std::optional<CodeFence> ParseFence(std::string_view line) {
  const int indent = IndentColumns(line);
  const std::string_view text = Trimmed(line);
  if (text.size() < 3 || (text[0] != '`' && text[0] != '~')) return std::nullopt;
  const size_t length = std::min(text.find_first_not_of(text[0]), text.size());
  const std::string_view info = Trimmed(text.substr(length));
  if (length < 3 || (text[0] == '`' && info.find('`') != std::string_view::npos)) return std::nullopt;
  return CodeFence{text[0], length, indent, info};
}

bool ClosesFence(std::string_view line, const CodeFence& fence) {
  const std::string_view text = Trimmed(line);
  return text.size() >= fence.length && text[0] == fence.character &&
         text.find_first_not_of(fence.character) == std::string_view::npos;
}

bool MayBecomeFence(std::string_view line) {
  const std::string_view text = Trimmed(line);
  return text.starts_with("```") || text.starts_with("~~~");
}

std::optional<ListMarker> ParseListMarker(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || IsThematicBreak(line)) return std::nullopt;
  size_t end = begin;
  ListMarker marker{};
  if (line[begin] == '-' || line[begin] == '*' || line[begin] == '+') {
    end = begin + 1;
    marker.can_interrupt = true;
  } else {
    while (end < line.size() && line[end] >= '0' && line[end] <= '9') ++end;
    const size_t num_digits = end - begin;
    if (num_digits == 0 || num_digits > 9 || end == line.size() || (line[end] != '.' && line[end] != ')')) {
      return std::nullopt;
    }
    marker.is_ordered = true;
    marker.can_interrupt = line.substr(begin, num_digits) == "1";
    ++end;
  }
  const std::string_view rest = line.substr(end);
  marker.is_empty = IsBlankLine(rest);
  marker.can_interrupt = marker.can_interrupt && !marker.is_empty;
  if (!rest.empty() && rest[0] != ' ' && rest[0] != '\t' && rest[0] != '\r') return std::nullopt;
  const int spaces = IndentColumns(rest);
  // More than four columns of white space are one, followed by indented code.
  marker.content_column =
      IndentColumns(line) + static_cast<int>(end - begin) + (marker.is_empty || spaces > 4 ? 1 : spaces);
  marker.text_begin = std::min(line.find_first_not_of(kBlanks, end), line.size());
  return marker;
}

ItemText TextAfterMarkers(std::string_view line) {
  ItemText item{line, 0};
  while (const std::optional<ListMarker> marker = ParseListMarker(item.text)) {
    item.text.remove_prefix(marker->text_begin);
    item.column += marker->content_column;
  }
  return item;
}

bool IsThematicBreak(std::string_view line) {
  const std::string_view text = Trimmed(line);
  if (text.size() < 3 || IndentColumns(line) > 3) return false;
  const char c = text[0];
  if (c != '-' && c != '*' && c != '_') return false;
  const std::array<char, 3> allowed = {c, ' ', '\t'};
  return std::count(text.begin(), text.end(), c) >= 3 && ConsistsOf(text, {allowed.data(), allowed.size()});
}

bool IsSetextUnderline(std::string_view line) {
  const std::string_view text = Trimmed(line);
  return !text.empty() && IndentColumns(line) <= 3 && (ConsistsOf(text, "=") || ConsistsOf(text, "-"));
}

bool IsAtxHeading(std::string_view line) {
  if (IndentColumns(line) > 3) return false;
  const std::string_view text = Trimmed(line);
  const size_t level = std::min(text.find_first_not_of('#'), text.size());
  return level >= 1 && level <= 6 && (level == text.size() || text[level] == ' ' || text[level] == '\t');
}

bool IsQuote(std::string_view line) { return IndentColumns(line) <= 3 && Trimmed(line).starts_with('>'); }

size_t CountCells(std::string_view line) {
  std::string_view text = Trimmed(line);
  if (text.starts_with('|')) text.remove_prefix(1);
  if (text.ends_with('|')) text.remove_suffix(1);
  return 1 + static_cast<size_t>(std::count(text.begin(), text.end(), '|'));
}

size_t TableColumns(std::string_view line) {
  const std::string_view text = Trimmed(line);
  if (!ConsistsOf(text, "|-: \t") || text.find('-') == std::string_view::npos ||
      text.find('|') == std::string_view::npos) {
    return 0;
  }
  return CountCells(line);
}

std::string_view MathBlockEnd(std::string_view line) {
  const std::string_view text = Trimmed(line);
  if (text.starts_with("$$") && text.find("$$", 2) == std::string_view::npos) return "$$";
  if (text.starts_with("\\[") && text.find("\\]", 2) == std::string_view::npos) return "\\]";
  return {};
}

}  // namespace vllm::app
