#include "tokenizer/jinja/syntax/lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tokenizer/jinja/values/letter_case.h"
#include "tokenizer/jinja/values/string_operations.h"
#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

std::string NormalizeNewlines(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
      result += '\n';
    } else {
      result += text[i];
    }
  }
  return result;
}

bool IsNameByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0; }
bool IsDigitByte(char c) { return c >= '0' && c <= '9'; }

// Decodes the escapes of a Python string literal as decode("unicode-escape") does.
class Unescaper {
 public:
  Unescaper(std::string_view text, int line) : text_(text), line_(line) {}

  std::string Run() {
    while (position_ < text_.size()) {
      const char c = text_[position_++];
      if (c != '\\') {
        result_ += c;
      } else {
        Escape();
      }
    }
    return std::move(result_);
  }

 private:
  void Escape() {
    if (position_ >= text_.size()) throw SyntaxError(line_, "string ends in a backslash");
    const char c = text_[position_];
    if ((c & 0x80) != 0) return NonAscii();
    ++position_;
    static constexpr std::string_view kFrom = "\\'\"abfnrtv";
    static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t found = kFrom.find(c); found != kFrom.npos) {
      result_ += kTo[found];
    } else if (c == '\n') {
      return;
    } else if (c >= '0' && c <= '7') {
      --position_;
      char32_t value = 0;
      for (int i = 0; i < 3 && position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '7'; ++i) {
        value = value * 8 + static_cast<char32_t>(text_[position_++] - '0');
      }
      AppendCodePoint(value, result_);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      Hex(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c == 'N') {
      throw SyntaxError(line_, "\\N escapes in strings are not supported");
    } else {
      result_ += '\\';
      result_ += c;
    }
  }

  // Jinja2 first replaces each non-ASCII character with an escape. A backslash before the character then escapes the
  // backslash of that escape, so the escape itself remains in the text.
  void NonAscii() { AppendEscape(NextCodePoint(text_, position_), result_); }

  void Hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      if (position_ >= text_.size() || std::isxdigit(static_cast<unsigned char>(text_[position_])) == 0) {
        throw SyntaxError(line_, "truncated escape in a string");
      }
      const char c = text_[position_++];
      value = value * 16 + static_cast<char32_t>(IsDigitByte(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
      throw SyntaxError(line_, "escape in a string is not a valid code point");
    }
    AppendCodePoint(value, result_);
  }

  std::string_view text_;
  int line_;
  size_t position_ = 0;
  std::string result_;
};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(NormalizeNewlines(source)), text_(source_) {
    // Jinja2's default is keep_trailing_newline=False.
    if (!text_.empty() && text_.back() == '\n') text_.remove_suffix(1);
  }

  std::vector<Token> Run() {
    while (position_ < text_.size()) Root();
    Add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  bool At(std::string_view what, size_t offset = 0) const {
    return position_ + offset <= text_.size() && text_.substr(position_ + offset, what.size()) == what;
  }

  void Add(TokenKind kind, std::string text) {
    if (tokens_.size() >= kMaxTokens) throw SyntaxError(line_, "template has too many tokens (limit 400000)");
    tokens_.push_back({kind, line_, std::move(text)});
  }

  void Advance(size_t bytes) {
    const std::string_view passed = text_.substr(position_, bytes);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    position_ += passed.size();
    if (!passed.empty()) line_starting_ = passed.back() == '\n';
  }

  size_t NumSpaces(size_t offset) const { return text_.size() - offset - StripLeft(text_.substr(offset)).size(); }

  // Returns the length of the tag end `end` ("%}" or "#}") at `offset`, including the text that it removes: "-%}"
  // removes all whitespace after it, "%}" removes one newline, "+%}" removes nothing. Returns 0 if there is no tag end.
  size_t EndTag(std::string_view end, size_t offset) const {
    const std::string_view rest = text_.substr(offset);
    if (rest.empty()) return 0;
    const bool sign = rest[0] == '-' || rest[0] == '+';
    if (rest.substr(sign ? 1 : 0, end.size()) != end) return 0;
    const size_t size = end.size() + (sign ? 1 : 0);
    if (rest[0] == '-') return size + NumSpaces(offset + size);
    if (!sign && size < rest.size() && rest[size] == '\n') return size + 1;
    return size;
  }

  // Adds text_[position_, tag) as a data token, without the trailing whitespace that the tag at offset `tag` removes.
  // `sign` is the '-' or '+' after the two characters that open the tag, or '\0' if there is none.
  void Data(size_t tag, char sign, bool is_variable) {
    std::string_view data = text_.substr(position_, tag - position_);
    if (sign == '-') {
      data = StripRight(data);
    } else if (sign != '+' && !is_variable) {
      const size_t line_start = data.rfind('\n') + 1;
      if ((line_start > 0 || line_starting_) && data.size() > line_start &&
          StripLeft(data.substr(line_start)).empty()) {
        data = data.substr(0, line_start);
      }
    }
    if (!data.empty()) Add(TokenKind::kData, std::string(data));
    Advance(tag - position_);
  }

  // Returns the length of the tag `word` ("raw" or "endraw") at `offset`, including the whitespace that it strips from
  // the text after it. Returns 0 if there is no such tag.
  size_t RawTag(size_t offset, std::string_view word) const {
    if (text_.substr(offset, 2) != "{%") return 0;
    size_t end = offset + 2;
    if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
    end += NumSpaces(end);
    if (text_.substr(end, word.size()) != word) return 0;
    end += word.size();
    end += NumSpaces(end);
    if (word == "endraw") {
      const size_t tag = EndTag("%}", end);
      return tag == 0 ? 0 : end + tag - offset;
    }
    if (text_.substr(end, 2) == "%}") return end + 2 - offset;
    if (text_.substr(end, 3) == "-%}") return end + 3 + NumSpaces(end + 3) - offset;
    return 0;
  }

  static char SignOf(std::string_view text, size_t offset) {
    return offset < text.size() && (text[offset] == '-' || text[offset] == '+') ? text[offset] : '\0';
  }

  void Root() {
    size_t tag = position_;
    for (;; ++tag) {
      tag = text_.find('{', tag);
      if (tag == text_.npos || tag + 1 >= text_.size()) {
        Add(TokenKind::kData, std::string(text_.substr(position_)));
        return Advance(text_.size() - position_);
      }
      const char next = text_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    const char type = text_[tag + 1];
    const char sign = SignOf(text_, tag + 2);
    const size_t raw = type == '%' ? RawTag(tag, "raw") : 0;
    Data(tag, sign, type == '{');
    if (raw != 0) {
      Advance(raw);
      return Raw();
    }
    if (type != '#') Add(type == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    Advance(sign == '\0' ? 2 : 3);
    if (type == '#') return Comment();
    Tag(type == '{');
  }

  void Raw() {
    for (size_t tag = position_; (tag = text_.find("{%", tag)) != text_.npos; ++tag) {
      const size_t end = RawTag(tag, "endraw");
      if (end == 0) continue;
      Data(tag, SignOf(text_, tag + 2), false);
      return Advance(end);
    }
    // As in Jinja2, a template may end right after the raw tag.
    if (position_ < text_.size()) throw SyntaxError(line_, "missing end of raw block");
  }

  void Comment() {
    for (size_t end = position_; (end = text_.find("#}", end)) != text_.npos; ++end) {
      // A sign before "#}" is part of the tag.
      const size_t start = end > position_ && (text_[end - 1] == '-' || text_[end - 1] == '+') ? end - 1 : end;
      return Advance(start + EndTag("#}", start) - position_);
    }
    if (position_ < text_.size()) throw SyntaxError(line_, "missing end of comment tag");
  }

  void Tag(bool is_variable) {
    std::string open;  // the closing brackets still expected; if there are any, "}}" is two braces
    for (;;) {
      Advance(NumSpaces(position_));
      if (position_ >= text_.size()) throw SyntaxError(line_, "template ends inside a tag");
      if (open.empty()) {
        size_t end = 0;
        if (!is_variable) {
          end = EndTag("%}", position_);
        } else if (At("}}")) {
          end = 2;
        } else if (At("-}}")) {
          end = 3 + NumSpaces(position_ + 3);
        }
        if (end != 0) {
          Add(is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
          return Advance(end);
        }
      }
      if (!Number() && !Name() && !String()) Operator(open);
    }
  }

  // Returns the end of the match of "(\d+_)*\d+" at `offset`, or `offset` if there is none.
  size_t Digits(size_t offset) const {
    size_t end = offset;
    for (size_t i = offset; i < text_.size() && IsDigitByte(text_[i]);) {
      while (i < text_.size() && IsDigitByte(text_[i])) ++i;
      end = i;
      if (i + 1 < text_.size() && text_[i] == '_' && IsDigitByte(text_[i + 1])) ++i;
    }
    return end;
  }

  void AddNumber(TokenKind kind, size_t end) {
    std::string digits(text_.substr(position_, end - position_));
    std::erase(digits, '_');
    Add(kind, std::move(digits));
    Advance(end - position_);
  }

  bool Number() {
    if (!IsDigitByte(text_[position_])) return false;
    const bool after_dot = position_ > 0 && text_[position_ - 1] == '.';
    const size_t whole = Digits(position_);
    size_t end = whole;
    if (!after_dot) {
      if (end + 1 < text_.size() && text_[end] == '.' && IsDigitByte(text_[end + 1])) end = Digits(end + 1);
      if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
        const size_t sign = end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-') ? 1 : 0;
        const size_t exponent = Digits(end + 1 + sign);
        if (exponent > end + 1 + sign) end = exponent;
      }
      if (end > whole) {
        AddNumber(TokenKind::kFloat, end);
        return true;
      }
    }
    if (text_[position_] == '0') {
      // Read 0b, 0o or 0x with at least one digit. Otherwise read only zeros, so "07" is two numbers.
      static constexpr std::string_view kDigits = "0123456789abcdef";
      const char prefix = position_ + 1 < text_.size() ? static_cast<char>(text_[position_ + 1] | 0x20) : ' ';
      const size_t base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
      const auto is_digit = [&](size_t i, size_t radix) {
        return i < text_.size() &&
               kDigits.substr(0, radix).find(static_cast<char>(std::tolower(text_[i]))) != kDigits.npos;
      };
      size_t i = position_ + (base != 0 ? 2 : 1);
      const size_t radix = base != 0 ? base : 1;
      size_t last = position_ + 1;
      while (is_digit(i, radix) || (i < text_.size() && text_[i] == '_' && is_digit(i + 1, radix))) last = ++i;
      end = last;
    }
    AddNumber(TokenKind::kInteger, end);
    return true;
  }

  bool Name() {
    size_t end = position_;
    while (end < text_.size() && IsNameByte(text_[end])) {
      size_t next = end;
      if (IsSpace(NextCodePoint(text_, next))) break;
      end = next;
    }
    if (end == position_) return false;
    const std::string_view name = text_.substr(position_, end - position_);
    for (size_t i = 0; i < name.size();) {
      const char32_t c = NextCodePoint(name, i);
      if (c >= 0x80 && !IsAlpha(c)) throw SyntaxError(line_, "invalid character in identifier");
    }
    Add(TokenKind::kName, std::string(name));
    Advance(name.size());
    return true;
  }

  bool String() {
    const char quote = text_[position_];
    if (quote != '"' && quote != '\'') return false;
    size_t end = position_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) throw SyntaxError(line_, "string is not terminated");
    Add(TokenKind::kString, Unescaper(text_.substr(position_ + 1, end - position_ - 1), line_).Run());
    Advance(end + 1 - position_);
    return true;
  }

  void Operator(std::string& open) {
    static constexpr std::array<std::string_view, 6> kLong = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kShort = "+-/*%~[](){}><=.:|,;";
    size_t size = 0;
    for (const std::string_view op : kLong) {
      if (At(op)) size = 2;
    }
    const char c = text_[position_];
    if (size == 0 && kShort.find(c) != kShort.npos) size = 1;
    if (size == 0) throw SyntaxError(line_, "unexpected character in a tag");
    if (size == 1 && (c == '(' || c == '[' || c == '{')) open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (size == 1 && (c == ')' || c == ']' || c == '}')) {
      if (open.empty() || open.back() != c) throw SyntaxError(line_, std::string("unexpected '") + c + "'");
      open.pop_back();
    }
    Add(TokenKind::kOperator, std::string(text_.substr(position_, size)));
    Advance(size);
  }

  std::string source_;
  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    throw SyntaxError(1, "template is too long (limit " + std::to_string(kMaxSourceBytes) + " bytes)");
  }
  if (!IsValidUtf8(source)) throw SyntaxError(1, "template is not UTF-8");
  return Lexer(source).Run();
}

}  // namespace vllm::tokenizer::jinja
