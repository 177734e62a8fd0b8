#include "app/markdown/escape_markdown.h"

#include <algorithm>

#include "app/markdown/source_line.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxMathBytes = 2000;
// md4c keeps block containers in an array and compares each line with all of them. More than this many in one line is
// no text that somebody wants to read as a list.
constexpr int kMaxContainersPerLine = 16;

bool IsPunctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// Returns the length of the run of `c` at `i`.
size_t RunLength(std::string_view text, size_t i, char c) {
  const size_t end = std::min(text.find_first_not_of(c, i), text.size());
  return end - i;
}

// Finds the runs of backquotes that end code spans. Each length of run is searched at most once after it was not found,
// so that the time is linear except for a factor of the number of different lengths.
class CodeSpans {
 public:
  explicit CodeSpans(std::string_view text) : text_(text) {}
  // Returns the end of the code span that begins with `length` backquotes before `from`, or npos.
  size_t End(size_t from, size_t length) {
    if (length >= missing_.size() || missing_[length]) return std::string_view::npos;
    for (size_t i = text_.find('`', from); i != std::string_view::npos; i = text_.find('`', i)) {
      const size_t run = RunLength(text_, i, '`');
      if (run == length) return i + run;
      i += run;
    }
    missing_[length] = true;
    return std::string_view::npos;
  }

 private:
  std::string_view text_;
  std::vector<bool> missing_ = std::vector<bool>(32);
};

// Finds where a pattern comes next. The calls together take linear time if their positions ascend.
class NextOccurrence {
 public:
  NextOccurrence(std::string_view text, std::string_view pattern) : text_(text), pattern_(pattern) {}
  size_t From(size_t position) {
    if (next_ != std::string_view::npos && (!was_searched_ || next_ < position)) next_ = text_.find(pattern_, position);
    was_searched_ = true;
    return next_;
  }

 private:
  std::string_view text_;
  std::string_view pattern_;
  size_t next_ = 0;
  bool was_searched_ = false;
};

// Returns true if a link reference definition, such as "[1]: https://...", begins at `i`, where text begins in a line.
bool IsDefinition(std::string_view text, size_t i) {
  if (text[i] != '[') return false;
  const size_t end = text.find_first_of("]\n", i);
  return end != std::string_view::npos && text.substr(end).starts_with("]:");
}

}  // namespace

std::string EscapeForMarkdown(std::string_view source, std::vector<size_t>& added) {
  std::string out;
  out.reserve(source.size() + 16);
  CodeSpans spans(source);
  NextOccurrence round_end(source, "\\)");
  NextOccurrence square_end(source, "\\]");
  NextOccurrence blank_line(source, "\n\n");
  bool in_marker = true;  // only list and quote markers so far in this line
  const auto escape = [&] {
    added.push_back(out.size());
    out += '\\';
  };
  for (size_t i = 0; i < source.size();) {
    const char c = source[i];
    if (i > 0 && source[i - 1] == '\n' && (c == '|' || c == '-' || c == ':')) {
      // md4c wants three dashes in each column of a table, GitHub one.
      const std::string_view line = source.substr(i, std::min(source.find('\n', i), source.size()) - i);
      if (TableColumns(line) > 0) {
        for (size_t at = 0; at < line.size(); ++at) {
          out += line[at];
          if (line[at] != '-' || (at > 0 && line[at - 1] == '-')) continue;
          for (size_t dashes = RunLength(line, at, '-'); dashes < 3; ++dashes) {
            added.push_back(out.size());
            out += '-';
          }
        }
        i += line.size();
        continue;
      }
    }
    if (c == '`') {
      in_marker = false;
      const size_t run = RunLength(source, i, '`');
      const size_t end = spans.End(i + run, run);
      const size_t next = end == std::string_view::npos ? i + run : end;
      out += source.substr(i, next - i);
      i = next;
    } else if (c == '\\' && i + 1 < source.size()) {
      in_marker = false;
      const char bracket = source[i + 1];
      if (bracket == '(' || bracket == '[') {
        size_t end = (bracket == '(' ? round_end : square_end).From(i + 2);
        if (end != std::string_view::npos && (end - i > kMaxMathBytes || blank_line.From(i) < end)) {
          end = std::string_view::npos;
        }
        escape();
        out += source.substr(i, 2);
        i += 2;
        if (end == std::string_view::npos) continue;
        for (; i < end + 2; ++i) {
          if (IsPunctuation(source[i])) escape();
          out += source[i];
        }
      } else if (bracket == ')' || bracket == ']') {
        escape();
        out += source.substr(i, 2);
        i += 2;
      } else {
        const bool is_break = bracket == '\n';
        out += source.substr(i, is_break ? 1 : 2);
        i += is_break ? 1 : 2;
      }
    } else {
      if (in_marker && IsDefinition(source, i)) escape();
      constexpr std::string_view kMarkers = " \t0123456789.)>-*+";
      in_marker = c == '\n' || (in_marker && kMarkers.find(c) != std::string_view::npos);
      out += c;
      ++i;
    }
  }
  return out;
}

bool NestsTooDeep(std::string_view source) {
  int num_containers = 0;
  bool in_marker = true;
  for (const char c : source) {
    if (c == '\n') {
      in_marker = true;
      num_containers = 0;
    } else if (in_marker && (c == '>' || c == '-' || c == '+' || c == '*' || c == '.' || c == ')')) {
      if (++num_containers > kMaxContainersPerLine && c != '-' && c != '*') return true;
      if (num_containers > 8 * kMaxContainersPerLine) return true;
    } else if (c != ' ' && c != '\t' && (c < '0' || c > '9')) {
      in_marker = false;
    }
  }
  return false;
}

}  // namespace vllm::app
