// StyledText: text for a terminal with colors, links and cursor movement. It consists of SafeText and of the control
// sequences in the table below. Untrusted text cannot contain them, because it has to become SafeText first. A plain
// value; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/terminal/link_uri.h"
#include "app/terminal/safe_text.h"

namespace vllm::app {

// The colors that are readable on both a light and a dark background. The palette is the user's.
enum class TextColor : uint8_t { kDefault, kRed, kGreen, kMagenta, kCyan };

struct TextStyle {
  TextColor color = TextColor::kDefault;
  bool bold = false;
  bool dim = false;
  bool italic = false;
  bool underline = false;
  bool strikethrough = false;

  bool operator==(const TextStyle&) const = default;
};

inline constexpr TextStyle kDimStyle = {.dim = true};

// Every control sequence that a StyledText can contain. A link is kOpenLink, a decimal number, kLinkSeparator, a
// LinkUri and kEndLink.
namespace sequences {
inline constexpr std::string_view kReset = "\x1b[0m";
inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kDim = "\x1b[2m";
inline constexpr std::string_view kItalic = "\x1b[3m";
inline constexpr std::string_view kUnderline = "\x1b[4m";
inline constexpr std::string_view kStrikethrough = "\x1b[9m";
inline constexpr std::string_view kRed = "\x1b[31m";
inline constexpr std::string_view kGreen = "\x1b[32m";
inline constexpr std::string_view kMagenta = "\x1b[35m";
inline constexpr std::string_view kCyan = "\x1b[36m";
inline constexpr std::string_view kOpenLink = "\x1b]8;id=";
inline constexpr std::string_view kLinkSeparator = ";";
inline constexpr std::string_view kEndLink = "\x1b\\";
inline constexpr std::string_view kCloseLink = "\x1b]8;;\x1b\\";
inline constexpr std::string_view kBeginUpdate = "\x1b[?2026h";  // synchronized update; ignored where unknown
inline constexpr std::string_view kEndUpdate = "\x1b[?2026l";
inline constexpr std::string_view kCursorUp = "\x1b[A";
inline constexpr std::string_view kEraseToEndOfLine = "\x1b[K";
inline constexpr std::string_view kCarriageReturn = "\r";
// Ends every style, link and update. Written when the process ends.
inline constexpr std::string_view kRestore = "\x1b[0m\x1b]8;;\x1b\\\x1b[?2026l";

inline constexpr std::array<std::string_view, 16> kAll = {
    kReset,   kBold, kDim,     kItalic,    kUnderline,   kStrikethrough, kRed,      kGreen,
    kMagenta, kCyan, kEndLink, kCloseLink, kBeginUpdate, kEndUpdate,     kCursorUp, kEraseToEndOfLine};
}  // namespace sequences

class StyledText {
 public:
  std::string_view view() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

  void Append(const SafeText& text) { bytes_ += text.view(); }
  // Appends text in a style, and ends the style.
  void Append(const SafeText& text, const TextStyle& style);
  void BeginStyle(const TextStyle& style);
  void EndStyle() { bytes_ += sequences::kReset; }
  // Terminals join links with the same number, for example of a link that extends over two rows.
  void OpenLink(const LinkUri& uri, int64_t number);
  void CloseLink() { bytes_ += sequences::kCloseLink; }
  void LineFeed() { bytes_ += '\n'; }

  // Bracket the bytes of one frame, which a terminal then shows at once.
  void BeginUpdate() { bytes_ += sequences::kBeginUpdate; }
  void EndUpdate() { bytes_ += sequences::kEndUpdate; }
  // Erases the row of the cursor and moves to its first column.
  void EraseRow();
  // Moves to the row above in the same column.
  void CursorUp() { bytes_ += sequences::kCursorUp; }

 private:
  std::string bytes_;
};

}  // namespace vllm::app
