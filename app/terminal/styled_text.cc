#include "app/terminal/styled_text.h"

namespace vllm::app {

void StyledText::Append(const SafeText& text, const TextStyle& style) {
  if (style == TextStyle()) {
    Append(text);
    return;
  }
  BeginStyle(style);
  Append(text);
  EndStyle();
}

void StyledText::BeginStyle(const TextStyle& style) {
  if (style.bold) bytes_ += sequences::kBold;
  if (style.dim) bytes_ += sequences::kDim;
  if (style.italic) bytes_ += sequences::kItalic;
  if (style.underline) bytes_ += sequences::kUnderline;
  if (style.strikethrough) bytes_ += sequences::kStrikethrough;
  switch (style.color) {
    case TextColor::kDefault:
      break;
    case TextColor::kRed:
      bytes_ += sequences::kRed;
      break;
    case TextColor::kGreen:
      bytes_ += sequences::kGreen;
      break;
    case TextColor::kMagenta:
      bytes_ += sequences::kMagenta;
      break;
    case TextColor::kCyan:
      bytes_ += sequences::kCyan;
      break;
  }
}

void StyledText::OpenLink(const LinkUri& uri, int64_t number) {
  bytes_ += sequences::kOpenLink;
  bytes_ += std::to_string(number);
  bytes_ += sequences::kLinkSeparator;
  bytes_ += uri.text();
  bytes_ += sequences::kEndLink;
}

void StyledText::EraseRow() {
  bytes_ += sequences::kCarriageReturn;
  bytes_ += sequences::kEraseToEndOfLine;
}

}  // namespace vllm::app
