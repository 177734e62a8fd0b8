#include "app/config/toml_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "engine/config/errors.h"
#include "engine/model_loader/escape.h"
#include "tokenizer/utf8.h"

namespace vllm {
namespace {

constexpr size_t kMaxKeyBytes = 1000;
constexpr size_t kMaxShownBytes = 60;

bool IsBare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  TomlDocument Read() {
    if (!IsValidUtf8(text_)) throw ConfigError(Escape(name_) + ": not valid UTF-8");
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    while (true) {
      SkipBlankLines();
      if (AtEnd()) break;
      if (Peek() == '[') {
        ReadHeader();
      } else {
        ReadEntry();
      }
      SkipSpaces();
      SkipComment();
      if (!AtEnd() && !SkipLineBreak()) Fail("text after the end of a line's value");
    }
    return std::move(document_);
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool StartsWith(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  // A position that is cheap to keep: counting a column costs time in proportion to the line's length.
  struct Mark {
    size_t at;
    size_t line_begin;
    int64_t line;
  };
  Mark Here() const { return {at_, line_begin_, line_}; }
  TomlPlace PlaceOf(const Mark& mark) const {
    const std::string_view before = text_.substr(mark.line_begin, mark.at - mark.line_begin);
    return {mark.line, 1 + static_cast<int64_t>(CountCodePoints(before))};
  }
  [[noreturn]] void FailAt(const TomlPlace& place, const std::string& why) const {
    throw ConfigError(Escape(name_) + ":" + place.Text() + ": " + why);
  }
  [[noreturn]] void FailAt(const Mark& mark, const std::string& why) const { FailAt(PlaceOf(mark), why); }
  [[noreturn]] void Fail(const std::string& why) const { FailAt(Here(), why); }

  void SkipSpaces() {
    while (Peek() == ' ' || Peek() == '\t') ++at_;
  }
  bool SkipLineBreak() {
    if (Peek() == '\r' && Peek(1) == '\n') ++at_;
    if (Peek() != '\n') return false;
    ++at_;
    ++line_;
    line_begin_ = at_;
    return true;
  }
  void SkipComment() {
    if (Peek() != '#') return;
    while (!AtEnd() && Peek() != '\n' && !(Peek() == '\r' && Peek(1) == '\n')) {
      if (IsControl(Peek())) Fail("a control character in a comment");
      ++at_;
    }
  }
  void SkipBlankLines() {
    do {
      SkipSpaces();
      SkipComment();
    } while (SkipLineBreak());
  }

  std::string ReadPart() {
    SkipSpaces();
    std::string part;
    if (Peek() == '"' || Peek() == '\'') {
      if (StartsWith("\"\"\"") || StartsWith("'''")) Fail("a key cannot have several lines");
      part = Peek() == '"' ? ReadBasicString() : ReadLiteralString();
    } else {
      const size_t begin = at_;
      while (IsBare(Peek())) ++at_;
      part = text_.substr(begin, at_ - begin);
      if (part.empty()) Fail("a key is missing");
    }
    if (part.size() > kMaxKeyBytes) Fail("the key is too long (limit " + std::to_string(kMaxKeyBytes) + " bytes)");
    SkipSpaces();
    return part;
  }

  void NoteTable(const std::string& name, const TomlPlace& place, bool is_header) {
    if (known_tables_.insert(name).second) {
      document_.tables.push_back({name, place});
    } else if (is_header) {
      FailAt(place, "the table " + Escape(name, kMaxShownBytes) + " is there twice");
    }
  }

  void ReadHeader() {
    const TomlPlace place = PlaceOf(Here());
    if (Peek(1) == '[') Fail("arrays of tables have no meaning here");
    ++at_;
    table_ = ReadPart();
    if (Peek() == '.') Fail("tables in tables have no meaning here");
    if (Peek() != ']') Fail("] is missing after the name of a table");
    ++at_;
    NoteTable(table_, place, true);
  }

  void ReadEntry() {
    TomlEntry entry;
    entry.place = PlaceOf(Here());
    entry.table = table_;
    entry.key = ReadPart();
    if (Peek() == '.') {
      if (!table_.empty()) Fail("dotted keys in a table have no meaning here");
      ++at_;
      entry.table = std::exchange(entry.key, ReadPart());
      NoteTable(entry.table, entry.place, false);
      if (Peek() == '.') Fail("a key has too many parts (limit 2)");
    }
    if (Peek() != '=') Fail("= is missing after the key " + Escape(entry.key, kMaxShownBytes));
    if (!known_keys_.emplace(entry.table, entry.key).second) {
      FailAt(entry.place, "the key " + Escape(entry.key, kMaxShownBytes) + " is there twice");
    }
    ++at_;
    SkipSpaces();
    if (Peek() == '[') {
      entry.is_array = true;
      ReadArray(entry.values);
    } else {
      entry.values.push_back(ReadScalar());
    }
    document_.entries.push_back(std::move(entry));
  }

  void ReadArray(std::vector<std::string>& values) {
    const Mark place = Here();
    ++at_;
    bool needs_comma = false;
    while (true) {
      SkipBlankLines();
      if (AtEnd()) FailAt(place, "the array has no end");
      if (Peek() == ']') break;
      if (needs_comma) {
        if (Peek() != ',') Fail(", or ] is missing in an array");
        ++at_;
        needs_comma = false;
        continue;
      }
      if (Peek() == ',') Fail("a value is missing before a comma");
      if (Peek() == '[') Fail("arrays in arrays have no meaning here");
      values.push_back(ReadScalar());
      needs_comma = true;
    }
    ++at_;
  }

  std::string ReadScalar() {
    if (StartsWith("\"\"\"")) return ReadLongString(true);
    if (StartsWith("'''")) return ReadLongString(false);
    if (Peek() == '"') return ReadBasicString();
    if (Peek() == '\'') return ReadLiteralString();
    if (Peek() == '{') Fail("inline tables have no meaning here");
    return ReadWord();
  }

  std::string ReadLiteralString() {
    const Mark place = Here();
    const size_t begin = ++at_;
    while (!AtEnd() && Peek() != '\'') {
      if (IsControl(Peek())) FailAt(place, "the string has no end on its line");
      ++at_;
    }
    if (AtEnd()) FailAt(place, "the string has no end");
    return std::string(text_.substr(begin, at_++ - begin));
  }

  std::string ReadBasicString() {
    const Mark place = Here();
    std::string value;
    ++at_;
    while (!AtEnd() && Peek() != '"') {
      if (IsControl(Peek())) FailAt(place, "the string has no end on its line");
      if (Peek() == '\\') {
        ReadEscape(value);
      } else {
        value += text_[at_++];
      }
    }
    if (AtEnd()) FailAt(place, "the string has no end");
    ++at_;
    return value;
  }

  // A string between three quotation marks; `is_basic`: with escapes. REQUIRES: the text starts with its delimiter.
  std::string ReadLongString(bool is_basic) {
    const Mark place = Here();
    const char quote = Peek();
    const std::string delimiter(3, quote);
    std::string value;
    at_ += 3;
    SkipLineBreak();
    while (!StartsWith(delimiter)) {
      if (AtEnd()) FailAt(place, "the string has no end");
      if (SkipLineBreak()) {
        value += '\n';
      } else if (IsControl(Peek())) {
        Fail("a control character in a string");
      } else if (is_basic && Peek() == '\\') {
        if (!SkipEscapedLineBreak()) ReadEscape(value);
      } else {
        value += text_[at_++];
      }
    }
    at_ += 3;
    // Up to two more quotation marks belong to the value.
    for (int i = 0; i < 2 && Peek() == quote; ++i, ++at_) value += quote;
    return value;
  }

  // A backslash at the end of a line joins it with the next text.
  bool SkipEscapedLineBreak() {
    size_t end = at_ + 1;
    while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t')) ++end;
    if (!text_.substr(end).starts_with("\n") && !text_.substr(end).starts_with("\r\n")) return false;
    at_ = end;
    do {
      SkipSpaces();
    } while (SkipLineBreak());
    return true;
  }

  void ReadEscape(std::string& value) {
    static constexpr std::string_view kNames = "btnfr\"\\";
    static constexpr std::string_view kValues = "\b\t\n\f\r\"\\";
    const char name = Peek(1);
    if (const size_t at = kNames.find(name); name != '\0' && at != std::string_view::npos) {
      value += kValues[at];
      at_ += 2;
      return;
    }
    if (name != 'u' && name != 'U') Fail("no such escape");
    const size_t num_digits = name == 'u' ? 4 : 8;
    const std::string_view digits = text_.substr(std::min(at_ + 2, text_.size()), num_digits);
    uint32_t code_point = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code_point, 16);
    const bool is_whole = error == std::errc() && digits.size() == num_digits && end == digits.data() + num_digits;
    if (!is_whole || code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
      Fail("not the number of a character");
    }
    AppendCodePoint(code_point, value);
    at_ += 2 + num_digits;
  }

  // true, false or a number.
  std::string ReadWord() {
    const size_t begin = at_;
    while (IsBare(Peek()) || Peek() == '+' || Peek() == '.' || Peek() == ':') ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "true" || word == "false") return std::string(word);
    if (std::optional<std::string> number = NumberText(word)) return *std::move(number);
    at_ = begin;
    if (word.empty()) Fail("a value is missing");
    Fail("must be a text in quotation marks, a number, true, false or an array of these (" +
         Escape(word, kMaxShownBytes) + ")");
  }

  static std::optional<std::string> NumberText(std::string_view word) {
    if (word.size() > 100) return std::nullopt;
    std::string digits;
    for (size_t i = 0; i < word.size(); ++i) {
      if (word[i] != '_') {
        digits += word[i];
        continue;
      }
      const auto is_digit = [&](size_t at) {
        return at < word.size() && std::isxdigit(static_cast<int>(word[at])) != 0;
      };
      if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return std::nullopt;
    }
    std::string_view unsigned_digits = digits;
    const bool has_sign = digits.starts_with('+') || digits.starts_with('-');
    const bool is_negative = digits.starts_with('-');
    if (has_sign) unsigned_digits.remove_prefix(1);
    if (unsigned_digits == "inf" || unsigned_digits == "nan")
      return (is_negative ? "-" : "") + std::string(unsigned_digits);
    int base = 10;
    if (!has_sign && digits.starts_with("0x")) base = 16;
    if (!has_sign && digits.starts_with("0o")) base = 8;
    if (!has_sign && digits.starts_with("0b")) base = 2;
    if (base != 10) {
      unsigned_digits.remove_prefix(2);
      if (unsigned_digits.starts_with('-') || unsigned_digits.starts_with('+')) return std::nullopt;
    }
    if (unsigned_digits.empty()) return std::nullopt;
    const char* first = unsigned_digits.data();
    const char* last = first + unsigned_digits.size();
    uint64_t magnitude = 0;
    const auto [end, error] = std::from_chars(first, last, magnitude, base);
    const bool has_leading_zero = base == 10 && unsigned_digits.size() > 1 && unsigned_digits[0] == '0';
    if (end == last && error == std::errc()) {
      const auto limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (is_negative ? 1 : 0);
      if (has_leading_zero || magnitude > limit) return std::nullopt;
      return (is_negative && magnitude > 0 ? "-" : "") + std::to_string(magnitude);
    }
    if (base != 10 || !IsFloat(unsigned_digits)) return std::nullopt;
    double value = 0;
    if (std::from_chars(first, last, value).ptr != last || !std::isfinite(value)) return std::nullopt;
    std::ostringstream text;
    text.precision(17);
    text << (is_negative ? -value : value);
    return text.str();
  }

  // digits ["." digits] [("e" | "E") [sign] digits], without a leading zero.
  static bool IsFloat(std::string_view text) {
    const auto skip_digits = [&text] {
      const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
      text.remove_prefix(end);
      return end > 0;
    };
    if (text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') return false;
    if (!skip_digits()) return false;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      if (!skip_digits()) return false;
    }
    if (text.starts_with('e') || text.starts_with('E')) {
      text.remove_prefix(1);
      if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
      if (!skip_digits()) return false;
    }
    return text.empty();
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  int64_t line_ = 1;
  std::string table_;
  std::set<std::string> known_tables_;
  std::set<std::pair<std::string, std::string>> known_keys_;
  TomlDocument document_;
};

}  // namespace

TomlDocument ReadToml(std::string_view text, const std::string& name) { return Reader(text, name).Read(); }

}  // namespace vllm
