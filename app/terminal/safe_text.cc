#include "app/terminal/safe_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr uint32_t kReplacementCodePoint = 0xFFFD;
constexpr uint32_t kZeroWidthNonJoiner = 0x200C;
constexpr uint32_t kZeroWidthJoiner = 0x200D;
constexpr uint32_t kTextSelector = 0xFE0E;   // VS15
constexpr uint32_t kEmojiSelector = 0xFE0F;  // VS16

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

template <size_t kSize>
bool Contains(const std::array<CodePointRange, kSize>& ranges, uint32_t c) {
  // The ranges are ascending. Find the first that does not end before c.
  const auto* range =
      std::lower_bound(ranges.begin(), ranges.end(), c, [](const CodePointRange& r, uint32_t v) { return r.last < v; });
  return range != ranges.end() && range->first <= c;
}

// Ranges that contain the scripts in which ZWJ and ZWNJ are part of the spelling: scripts with joining letters and
// scripts that stack consonants (Unicode 15 Core Specification, chapters 9 to 17 and 19, and section 23.2). A few other
// scripts between them are included.
constexpr std::array<CodePointRange, 14> kJoiningScripts = {{
    {0x0600, 0x08FF},    // Arabic to Arabic Extended-A
    {0x0900, 0x0DFF},    // Devanagari to Sinhala
    {0x0F00, 0x109F},    // Tibetan, Myanmar
    {0x1700, 0x177F},    // scripts of the Philippines
    {0x1780, 0x180A},    // Khmer, Mongolian punctuation
    {0x1810, 0x18AF},    // Mongolian
    {0x1A20, 0x1CFF},    // Tai Tham to Vedic Extensions
    {0xA840, 0xA8FF},    // Phags-pa to Devanagari Extended
    {0xA980, 0xAADF},    // Javanese to Tai Viet
    {0xFB50, 0xFDFF},    // Arabic Presentation Forms-A
    {0xFE70, 0xFEFC},    // Arabic Presentation Forms-B
    {0x10AC0, 0x10FFF},  // Manichaean to Elymaic
    {0x11000, 0x11FFF},  // Brahmi to Tamil Supplement
    {0x1E900, 0x1E95F},  // Adlam
}};

// Characters that may precede ZWJ or a variation selector in an emoji: pictographs, skin tone modifiers, and characters
// that VS16 turns into emoji. Contains all assigned Extended_Pictographic characters and some others.
constexpr std::array<CodePointRange, 19> kEmoji = {{
    {'#', '#'},       {'*', '*'},       {'0', '9'},         {0x00A9, 0x00A9},   {0x00AE, 0x00AE},
    {0x203C, 0x203C}, {0x2049, 0x2049}, {0x2122, 0x2122},   {0x2139, 0x2139},   {0x2194, 0x21AA},
    {0x231A, 0x23FF}, {0x24C2, 0x24C2}, {0x25AA, 0x27BF},   {0x2934, 0x2935},   {0x2B05, 0x2B55},
    {0x3030, 0x303D}, {0x3297, 0x3299}, {0x1F000, 0x1F1FF}, {0x1F200, 0x1FAFF},
}};

bool IsEmoji(uint32_t c) { return Contains(kEmoji, c); }
bool IsPictograph(uint32_t c) { return c >= 0x2000 && IsEmoji(c); }

// Returns true if the joiner or selector `c` belongs to the character before it.
bool MayFollow(uint32_t previous, uint32_t c) {
  if (c == kTextSelector || c == kEmojiSelector) return IsEmoji(previous);
  if (Contains(kJoiningScripts, previous)) return true;
  return c == kZeroWidthJoiner && (IsPictograph(previous) || previous == kEmojiSelector);
}

}  // namespace

bool IsUnsafeCodePoint(uint32_t c) {
  if (c < 0x20) return c != '\n' && c != '\t';
  if (c >= 0x7F && c <= 0x9F) return true;
  if (c == 0x061C || c == 0x200E || c == 0x200F) return true;  // directional marks
  if (c >= 0x2028 && c <= 0x202E) return true;                 // line and paragraph separators, bidi controls
  if (c >= 0x2066 && c <= 0x2069) return true;                 // bidi isolates
  if (c >= 0xFFF9 && c <= 0xFFFB) return true;                 // interlinear annotation
  // Invisible characters, in which text can be hidden.
  if (c == 0x00AD || c == 0x034F) return true;                                // soft hyphen, combining grapheme joiner
  if (c == 0x115F || c == 0x1160 || c == 0x3164 || c == 0xFFA0) return true;  // Hangul fillers
  if (c == 0x17B4 || c == 0x17B5) return true;                                // Khmer inherent vowels
  if (c >= 0x180B && c <= 0x180F) return true;                                // Mongolian selectors and vowel separator
  if (c == 0x200B || (c >= 0x2060 && c <= 0x2065) || (c >= 0x206A && c <= 0x206F) || c == 0xFEFF) return true;
  if (c >= 0xFE00 && c <= 0xFE0D) return true;    // variation selectors 1 to 14
  if (c >= 0xFFF0 && c <= 0xFFF8) return true;    // unassigned, invisible
  if (c >= 0x1BCA0 && c <= 0x1BCA3) return true;  // shorthand format controls
  if (c >= 0x1D173 && c <= 0x1D17A) return true;  // musical format controls
  return c >= 0xE0000 && c <= 0xE0FFF;            // tags, variation selectors 17 to 256
}

bool IsJoiningCodePoint(uint32_t c) {
  return c == kZeroWidthNonJoiner || c == kZeroWidthJoiner || c == kTextSelector || c == kEmojiSelector;
}

void SafeTextFilter::Put(uint32_t code_point, std::string& out) {
  const bool is_joiner = IsJoiningCodePoint(code_point);
  const bool is_shown = is_joiner ? !MayFollow(previous_, code_point) : IsUnsafeCodePoint(code_point);
  // Shows the second of two consecutive joiners as <hex>, because a sequence of joiners could hide text. The exception
  // is ZWJ after VS16, which occurs in emoji.
  previous_ = is_shown || (is_joiner && code_point != kEmojiSelector) ? 0 : code_point;
  if (is_shown) {
    std::array<char, 16> shown{};
    const int length = std::snprintf(shown.data(), shown.size(), "<%02x>", code_point);
    out.append(shown.data(), static_cast<size_t>(length));
  } else {
    tokenizer::AppendCodePoint(code_point, out);
  }
}

// A lone byte 80..9F is an 8-bit C1 control for some terminals. Like any ill-formed byte it becomes U+FFFD.
void SafeTextFilter::Feed(std::string_view untrusted, SafeText& safe) {
  const std::string joined = incomplete_.empty() ? "" : incomplete_ + std::string(untrusted);
  const std::string_view bytes = incomplete_.empty() ? untrusted : joined;
  incomplete_.clear();
  for (size_t i = 0; i < bytes.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(bytes, i);
    if (step.kind == tokenizer::Utf8Step::Kind::kIncomplete) {
      incomplete_ = bytes.substr(i);
      return;
    }
    Put(step.kind == tokenizer::Utf8Step::Kind::kValid ? step.code_point : kReplacementCodePoint, safe.text_);
    i += step.length;
  }
}

void SafeTextFilter::Flush(SafeText& safe) {
  if (!incomplete_.empty()) safe.text_ += tokenizer::kReplacementCharacter;
  *this = SafeTextFilter();
}

SafeText::SafeText(std::string_view untrusted) {
  SafeTextFilter filter;
  filter.Feed(untrusted, *this);
  filter.Flush(*this);
}

SafeText SafeLine(std::string_view untrusted) {
  std::string line;
  line.reserve(untrusted.size());
  for (const char c : untrusted) {
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  return SafeText(line);
}

SafeText SafeJson(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  const auto escape = [&escaped](uint32_t c) {
    std::array<char, 16> buffer{};
    int length = 0;
    if (c >= 0x10000) {
      const uint32_t v = c - 0x10000;
      length = std::snprintf(buffer.data(), buffer.size(), "\\u%04x\\u%04x", 0xD800 + (v >> 10), 0xDC00 + (v & 0x3FF));
    } else {
      length = std::snprintf(buffer.data(), buffer.size(), "\\u%04x", c);
    }
    escaped.append(buffer.data(), static_cast<size_t>(length));
  };
  for (size_t i = 0; i < json.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(json, i);
    const uint32_t c = step.code_point;
    // Escape every joiner, because it is unknown how the program that reads the JSON displays it. The escape does not
    // change the value of the string. The serializer has already escaped C0.
    if (c >= 0x7F && (IsUnsafeCodePoint(c) || IsJoiningCodePoint(c))) {
      escape(c);
    } else {
      escaped.append(json, i, step.length);
    }
    i += step.length;
  }
  return SafeText(escaped);
}

}  // namespace vllm::app
