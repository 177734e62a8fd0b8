#include "app/cli/toml/toml_reader.h"

#include <set>
#include <tuple>
#include <utility>

#include "app/cli/toml/toml_scalar.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxKeyBytes = 1000;
constexpr size_t kMaxShownBytes = 60;
constexpr size_t kMaxInlineKeys = 100;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsBare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

class TomlTextReader {
 public:
  TomlTextReader(std::string_view text, const std::string& name, std::string_view nested)
      : text_(text), name_(name), nested_(nested) {}

  TomlDocument Read() {
    if (!tokenizer::IsValidUtf8(text_)) throw ConfigError(Escape(name_) + ": not valid UTF-8");
    if (text_.starts_with(kByteOrderMark)) {
      text_.remove_prefix(kByteOrderMark.size());
      num_skipped_ = kByteOrderMark.size();
    }
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
      if (!AtEnd() && !SkipLineBreak()) Fail("unexpected text at the end of the line");
    }
    return std::move(document_);
  }

 private:
  bool AtEnd() const { return pos_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  bool StartsWith(std::string_view word) const { return text_.substr(pos_).starts_with(word); }

  // A position that is cheap to save. Computing its column takes time linear in the length of the line.
  struct Mark {
    size_t pos;
    size_t line_begin;
    int64_t line;
  };
  Mark Here() const { return {pos_, line_begin_, line_}; }
  TomlPosition PositionOf(const Mark& mark) const {
    const std::string_view before = text_.substr(mark.line_begin, mark.pos - mark.line_begin);
    return {mark.line, 1 + static_cast<int64_t>(tokenizer::CountCodePoints(before))};
  }
  [[noreturn]] void FailAt(const TomlPosition& position, const std::string& why) const {
    throw ConfigError(Escape(name_) + ":" + position.Text() + ": " + why);
  }
  [[noreturn]] void FailAt(const Mark& mark, const std::string& why) const { FailAt(PositionOf(mark), why); }
  [[noreturn]] void Fail(const std::string& why) const { FailAt(Here(), why); }

  void SkipSpaces() {
    while (Peek() == ' ' || Peek() == '\t') ++pos_;
  }
  bool SkipLineBreak() {
    if (Peek() == '\r' && Peek(1) == '\n') ++pos_;
    if (Peek() != '\n') return false;
    ++pos_;
    ++line_;
    line_begin_ = pos_;
    return true;
  }
  void SkipComment() {
    if (Peek() != '#') return;
    while (!AtEnd() && Peek() != '\n' && !(Peek() == '\r' && Peek(1) == '\n')) {
      if (IsControl(Peek())) Fail("control character in a comment");
      ++pos_;
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
      if (StartsWith("\"\"\"") || StartsWith("'''")) Fail("a key cannot be in triple quotes");
      part = ReadString();
    } else {
      const size_t begin = pos_;
      while (IsBare(Peek())) ++pos_;
      part = text_.substr(begin, pos_ - begin);
      if (part.empty()) Fail("missing key");
    }
    if (part.size() > kMaxKeyBytes) Fail("the key is too long (limit " + std::to_string(kMaxKeyBytes) + " bytes)");
    SkipSpaces();
    return part;
  }

  void NoteTable(const std::string& name, const std::string& subtable, const TomlPosition& position, bool is_header) {
    if (known_tables_.emplace(name, subtable).second) {
      document_.tables.push_back({name, subtable, position});
    } else if (is_header) {
      FailAt(position, "table " + Escape(name, kMaxShownBytes) + " is defined twice");
    }
  }

  void ReadHeader() {
    const TomlPosition position = PositionOf(Here());
    if (document_.first_header == std::string::npos) document_.first_header = num_skipped_ + pos_;
    if (Peek(1) == '[') Fail("arrays of tables are not supported");
    ++pos_;
    table_ = ReadPart();
    subtable_.clear();
    if (Peek() == '.') {
      if (nested_.empty() || table_ != nested_) Fail("nested tables are not supported");
      ++pos_;
      subtable_ = ReadPart();
      if (Peek() == '.') Fail("nested tables are not supported");
    }
    if (Peek() != ']') Fail("missing ] after the table name");
    ++pos_;
    NoteTable(table_, subtable_, position, true);
  }

  void ReadEntry() {
    TomlEntry entry;
    entry.position = PositionOf(Here());
    entry.table = table_;
    entry.subtable = subtable_;
    entry.key = ReadPart();
    if (Peek() == '.') {
      if (!table_.empty()) Fail("dotted keys in a table are not supported");
      ++pos_;
      entry.table = std::exchange(entry.key, ReadPart());
      NoteTable(entry.table, "", entry.position, false);
      if (Peek() == '.') Fail("the key has too many parts (limit 2)");
    }
    if (Peek() != '=') Fail("missing = after key " + Escape(entry.key, kMaxShownBytes));
    if (!known_keys_.emplace(entry.table, entry.subtable, entry.key).second) {
      FailAt(entry.position, "key " + Escape(entry.key, kMaxShownBytes) + " is defined twice");
    }
    ++pos_;
    SkipSpaces();
    entry.value_begin = num_skipped_ + pos_;
    if (Peek() == '[') {
      entry.is_array = true;
      ReadArray(entry.values);
    } else if (Peek() == '{' && !entry.subtable.empty()) {
      entry.is_inline_table = true;
      ReadInlineTable(entry.values);
    } else {
      entry.values.push_back(ReadScalar());
    }
    entry.value_end = num_skipped_ + pos_;
    document_.entries.push_back(std::move(entry));
  }

  void ReadArray(std::vector<std::string>& values) {
    const Mark begin = Here();
    ++pos_;
    bool needs_comma = false;
    while (true) {
      SkipBlankLines();
      if (AtEnd()) FailAt(begin, "unterminated array");
      if (Peek() == ']') break;
      if (needs_comma) {
        if (Peek() != ',') Fail("missing , or ] in an array");
        ++pos_;
        needs_comma = false;
        continue;
      }
      if (Peek() == ',') Fail("missing value before a comma");
      if (Peek() == '[') Fail("nested arrays are not supported");
      values.push_back(ReadScalar());
      needs_comma = true;
    }
    ++pos_;
  }

  void ReadInlineTable(std::vector<std::string>& values) {
    ++pos_;
    SkipSpaces();
    while (Peek() != '}') {
      const Mark begin = Here();
      std::string key = ReadPart();
      for (size_t i = 0; i < values.size(); i += 2) {
        if (values[i] == key) FailAt(begin, "key " + Escape(key, kMaxShownBytes) + " is defined twice");
      }
      if (values.size() >= 2 * kMaxInlineKeys) FailAt(begin, "too many keys (limit 100)");
      if (Peek() != '=') Fail("missing = after key " + Escape(key, kMaxShownBytes));
      ++pos_;
      SkipSpaces();
      if (Peek() == '[') Fail("an inline table can contain no array");
      values.push_back(std::move(key));
      values.push_back(ReadScalar());
      SkipSpaces();
      if (Peek() == '}') break;
      if (Peek() != ',') Fail("missing , or } in an inline table");
      ++pos_;
      SkipSpaces();
      if (Peek() == '}') Fail("missing key after a comma");
    }
    ++pos_;
  }

  std::string ReadScalar() {
    if (StartsWith("\"\"\"") || StartsWith("'''")) return ReadLongString();
    if (Peek() == '"' || Peek() == '\'') return ReadString();
    if (Peek() == '{') Fail("inline tables are not supported");
    return ReadWord();
  }

  // Returns the contents of the string literal that begins at `begin` and ends before pos_. REQUIRES: a line feed
  // follows each carriage return in it.
  std::string ParseString(const Mark& begin) const {
    std::string raw(text_.substr(begin.pos, pos_ - begin.pos));
    if (raw.size() > kMaxTomlScalarBytes) {
      FailAt(begin, "the string is too long (limit " + std::to_string(kMaxTomlScalarBytes) + " bytes)");
    }
    // Line breaks in values are \n on every system.
    std::erase(raw, '\r');
    TomlScalar scalar = ParseTomlScalar(raw);
    if (!scalar.error.empty()) FailAt(begin, "invalid string: " + Escape(scalar.error));
    return std::move(scalar.text);
  }

  // Skips a backslash and the character after it, so that an escaped quotation mark does not end the string.
  void SkipEscape() {
    static constexpr std::string_view kNames = "btnfr\"\\uU \t\r\n";
    const bool is_lone_return = Peek(1) == '\r' && Peek(2) != '\n';
    if (Peek(1) == '\0' || is_lone_return || kNames.find(Peek(1)) == std::string_view::npos) {
      Fail("unknown escape sequence");
    }
    ++pos_;
    if (!SkipLineBreak()) ++pos_;
  }

  // REQUIRES: the next character is a quotation mark.
  std::string ReadString() {
    const Mark begin = Here();
    const char quote = Peek();
    ++pos_;
    while (!AtEnd() && Peek() != quote) {
      if (IsControl(Peek())) FailAt(begin, "unterminated string, or one that contains a control character");
      if (quote == '"' && Peek() == '\\' && Peek(1) != '\n' && Peek(1) != '\r') {
        SkipEscape();
      } else {
        ++pos_;
      }
    }
    if (AtEnd()) FailAt(begin, "unterminated string");
    ++pos_;
    return ParseString(begin);
  }

  // Reads a string in triple quotes. REQUIRES: the next three characters are quotation marks.
  std::string ReadLongString() {
    const Mark begin = Here();
    const char quote = Peek();
    const std::string delimiter(3, quote);
    pos_ += 3;
    while (!StartsWith(delimiter)) {
      if (AtEnd()) FailAt(begin, "unterminated string");
      if (quote == '"' && Peek() == '\\') {
        SkipEscape();
      } else if (!SkipLineBreak()) {
        if (IsControl(Peek())) Fail("control character in a string");
        ++pos_;
      }
    }
    pos_ += 3;
    // Up to two quotation marks directly before the closing ones belong to the value.
    for (int i = 0; i < 2 && Peek() == quote; ++i) ++pos_;
    return ParseString(begin);
  }

  // Reads true, false or a number.
  std::string ReadWord() {
    const Mark begin = Here();
    while (IsBare(Peek()) || Peek() == '+' || Peek() == '.' || Peek() == ':') ++pos_;
    const std::string_view word = text_.substr(begin.pos, pos_ - begin.pos);
    if (word.empty()) FailAt(begin, "missing value");
    const std::string shown = Escape(word, kMaxShownBytes);
    if (word.size() > kMaxTomlWordBytes) {
      FailAt(begin, "the value is too long (limit " + std::to_string(kMaxTomlWordBytes) + " bytes): " + shown);
    }
    TomlScalar scalar = ParseTomlScalar(word);
    if (scalar.error.empty()) return std::move(scalar.text);
    FailAt(begin, "must be a quoted string, a number, true, false or an array of these (" + shown + ": " +
                      Escape(scalar.error) + ")");
  }

  std::string_view text_;
  const std::string& name_;
  size_t num_skipped_ = 0;  // bytes before text_
  size_t pos_ = 0;
  size_t line_begin_ = 0;
  int64_t line_ = 1;
  std::string_view nested_;
  std::string table_;
  std::string subtable_;
  std::set<std::pair<std::string, std::string>> known_tables_;
  std::set<std::tuple<std::string, std::string, std::string>> known_keys_;
  TomlDocument document_;
};

}  // namespace

TomlDocument ReadToml(std::string_view text, const std::string& name, std::string_view nested) {
  return TomlTextReader(text, name, nested).Read();
}

}  // namespace vllm::app
