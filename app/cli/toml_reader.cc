#include "app/cli/toml_reader.h"

#include <set>
#include <utility>

#include "app/cli/toml_scalar.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/unicode/utf8.h"

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
      part = ReadString();
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
    if (Peek(1) == '[') Fail("arrays of tables are not supported");
    ++at_;
    table_ = ReadPart();
    if (Peek() == '.') Fail("tables in tables are not supported");
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
      if (!table_.empty()) Fail("dotted keys in a table are not supported");
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
      if (Peek() == '[') Fail("arrays in arrays are not supported");
      values.push_back(ReadScalar());
      needs_comma = true;
    }
    ++at_;
  }

  std::string ReadScalar() {
    if (StartsWith("\"\"\"") || StartsWith("'''")) return ReadLongString();
    if (Peek() == '"' || Peek() == '\'') return ReadString();
    if (Peek() == '{') Fail("inline tables are not supported");
    return ReadWord();
  }

  // The contents of the string from `begin` to here.
  std::string ParseString(const Mark& begin) const {
    std::string raw(text_.substr(begin.at, at_ - begin.at));
    if (raw.size() > kMaxTomlScalarBytes) {
      FailAt(begin, "the string is too long (limit " + std::to_string(kMaxTomlScalarBytes) + " bytes)");
    }
    // A line of the value ends with \n on every system. A \r can only stand before a line break here.
    std::erase(raw, '\r');
    TomlScalar scalar = ParseTomlScalar(raw);
    if (!scalar.error.empty()) FailAt(begin, "not a valid string: " + Escape(scalar.error));
    return std::move(scalar.text);
  }

  // Passes over a backslash and the character after it, so that an escaped quotation mark does not end a string.
  void SkipEscape() {
    static constexpr std::string_view kNames = "btnfr\"\\uU \t\r\n";
    if (Peek(1) == '\0' || kNames.find(Peek(1)) == std::string_view::npos) Fail("no such escape");
    ++at_;
    if (!SkipLineBreak()) ++at_;
  }

  // REQUIRES: the text starts with a quotation mark.
  std::string ReadString() {
    const Mark begin = Here();
    const char quote = Peek();
    ++at_;
    while (!AtEnd() && Peek() != quote) {
      if (IsControl(Peek())) FailAt(begin, "the string has no end on its line");
      if (quote == '"' && Peek() == '\\' && Peek(1) != '\n' && Peek(1) != '\r') {
        SkipEscape();
      } else {
        ++at_;
      }
    }
    if (AtEnd()) FailAt(begin, "the string has no end");
    ++at_;
    return ParseString(begin);
  }

  // A string between three quotation marks. REQUIRES: the text starts with them.
  std::string ReadLongString() {
    const Mark begin = Here();
    const char quote = Peek();
    const std::string delimiter(3, quote);
    at_ += 3;
    while (!StartsWith(delimiter)) {
      if (AtEnd()) FailAt(begin, "the string has no end");
      if (quote == '"' && Peek() == '\\') {
        SkipEscape();
      } else if (!SkipLineBreak()) {
        if (IsControl(Peek())) Fail("a control character in a string");
        ++at_;
      }
    }
    at_ += 3;
    // Up to two more quotation marks belong to the value.
    for (int i = 0; i < 2 && Peek() == quote; ++i) ++at_;
    return ParseString(begin);
  }

  // true, false or a number.
  std::string ReadWord() {
    const Mark begin = Here();
    while (IsBare(Peek()) || Peek() == '+' || Peek() == '.' || Peek() == ':') ++at_;
    const std::string_view word = text_.substr(begin.at, at_ - begin.at);
    if (word.empty()) FailAt(begin, "a value is missing");
    const std::string shown = Escape(word, kMaxShownBytes);
    if (word.size() > kMaxTomlWordBytes) {
      FailAt(begin, "the value is too long (limit " + std::to_string(kMaxTomlWordBytes) + " bytes): " + shown);
    }
    TomlScalar scalar = ParseTomlScalar(word);
    if (scalar.error.empty()) return std::move(scalar.text);
    FailAt(begin, "must be a text in quotation marks, a number, true, false or an array of these (" + shown + ": " +
                      Escape(scalar.error) + ")");
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
