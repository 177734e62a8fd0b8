#include "app/markdown/line_renderer.h"

#include <utility>

#include "app/markdown/inline_text.h"

namespace vllm::app {
namespace {

TextStyle CodeStyle(CodeTokenKind kind) {
  switch (kind) {
    case CodeTokenKind::kComment:
      return {.dim = true};
    case CodeTokenKind::kString:
    case CodeTokenKind::kAdded:
      return {.color = TextColor::kGreen};
    case CodeTokenKind::kNumber:
      return {.color = TextColor::kCyan};
    case CodeTokenKind::kKeyword:
      return {.color = TextColor::kMagenta};
    case CodeTokenKind::kRemoved:
      return {.color = TextColor::kRed};
    case CodeTokenKind::kPlain:
      break;
  }
  return {};
}

}  // namespace

Row RenderCodeLine(std::string_view line, const CodeLanguage* language, CodeState& state,
                   const RenderOptions& options) {
  Row row;
  row.is_code = true;
  if (!options.has_styles || line.size() > kMaxHighlightedLineBytes) {
    row.Add(SafeText(line), {});
    return row;
  }
  SafeTextFilter filter;
  for (const CodeToken& token : LexCodeLine(language, line, state)) {
    SafeText text;
    filter.Feed(line.substr(token.begin, token.end - token.begin), text);
    if (token.end == line.size()) filter.Flush(text);
    row.Add(std::move(text), CodeStyle(token.kind));
  }
  return row;
}

Row RenderFence(std::string_view line, const RenderOptions& options) {
  Row row;
  row.is_code = true;
  row.Add(SafeText(line), options.DimStyle());
  return row;
}

std::vector<Row> RenderPlainText(std::string_view text, size_t start, const RenderOptions& options) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  InlineText plain;
  plain.AddSource(text, 0, {});
  plain.DropBefore(start);
  std::vector<Row> rows;
  if (plain.empty()) return rows;
  plain.Wrap(options.columns, [&](size_t begin, size_t end) {
    Row row;
    plain.AppendTo(row, begin, end);
    rows.push_back(std::move(row));
  });
  return rows;
}

}  // namespace vllm::app
