#include "engine/structured_output/dialects/text_cursor.h"

#include <algorithm>

#include "engine/config/errors.h"
#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/regex/code_point_set.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

// The largest bound of a counted repetition, which is a counter and needs no space.
constexpr uint32_t kMaxRepeat = uint32_t{1} << 20;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

}  // namespace

TextCursor::TextCursor(std::string_view text) : text_(text) {
  if (text.size() > kMaxBytes) {
    throw RequestError("grammar: too long (" + std::to_string(text.size()) + " bytes, limit " +
                       std::to_string(kMaxBytes) + ")");
  }
  if (!tokenizer::IsValidUtf8(text)) throw RequestError("grammar: not valid UTF-8");
  if (text.find('\0') != text.npos) throw RequestError("grammar: contains a NUL byte");
  Take("\xEF\xBB\xBF");
}

void TextCursor::FailAt(size_t at, const std::string& why) const {
  const std::string_view before = text_.substr(0, at);
  const size_t line_start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t column = 1 + tokenizer::CountCodePoints(before.substr(line_start));
  throw RequestError("grammar: " + why + " at line " + std::to_string(line) + ", column " + std::to_string(column));
}

bool TextCursor::Take(std::string_view text) {
  if (!LooksAt(text)) return false;
  at_ += text.size();
  return true;
}

void TextCursor::Expect(std::string_view text) {
  if (!Take(text)) Fail("missing " + std::string(text));
}

char32_t TextCursor::TakeCodePoint() {
  if (AtEnd()) Fail("unexpected end");
  const tokenizer::CodePoint c = tokenizer::CodePointAt(text_, at_);
  at_ += c.length;
  return c.value;
}

void TextCursor::SkipLine() { at_ = std::min(text_.size(), text_.find('\n', at_)); }

std::string_view TextCursor::TakeName() {
  const size_t start = at_;
  while (IsNameCharacter(Peek())) ++at_;
  return TextFrom(start);
}

std::optional<uint32_t> TextCursor::TakeNumber(uint32_t limit) {
  const size_t start = at_;
  uint64_t value = 0;
  for (; IsDigit(Peek()); ++at_) {
    value = value * 10 + static_cast<uint64_t>(Peek() - '0');
    if (value > limit) FailAt(start, "the number is too large (limit " + std::to_string(limit) + ")");
  }
  if (at_ == start) return std::nullopt;
  return static_cast<uint32_t>(value);
}

char32_t TextCursor::TakeHex(size_t num_digits) {
  char32_t value = 0;
  for (size_t i = 0; i < num_digits; ++i, ++at_) {
    const char c = Peek();
    const char lower = static_cast<char>(c | 0x20);
    if (IsDigit(c)) {
      value = value * 16 + static_cast<char32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<char32_t>(lower - 'a' + 10);
    } else {
      Fail("missing hexadecimal digit");
    }
  }
  if (value > CodePointSet::kMax || (value >= 0xD800 && value <= 0xDFFF)) Fail("invalid code point");
  return value;
}

void TextCursor::TakeCounts(uint32_t& min, uint32_t& max) {
  const auto skip_space = [&] {
    while (Peek() == ' ' || Peek() == '\t') ++at_;
  };
  skip_space();
  const std::optional<uint32_t> low = TakeNumber(kMaxRepeat);
  skip_space();
  std::optional<uint32_t> high = low;
  if (Take(",")) {
    skip_space();
    high = TakeNumber(kMaxRepeat);
    skip_space();
    if (!low && !high) Fail("missing number");
    if (!high) high = GrammarBuilder::kUnbounded;
  }
  if (!high) Fail("missing number");
  min = low.value_or(0);
  max = *high;
  if (min > max) Fail("the bounds of a repetition are in the wrong order");
  Expect("}");
}

}  // namespace vllm
