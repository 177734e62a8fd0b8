#include "tokenizer/formats/json_scanner.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "tokenizer/formats/python_json.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {

void JsonScanner::Fail(const std::string& why) const {
  throw TokenizerError("reading " + std::string(name_) + ": " + why + " (byte " + std::to_string(position_) + ")");
}

void JsonScanner::SkipSpace() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++position_;
  }
}

char JsonScanner::Peek() {
  SkipSpace();
  if (position_ == text_.size()) Fail("unexpected end of the JSON text");
  return text_[position_];
}

void JsonScanner::Expect(char c) {
  if (Peek() != c) Fail(std::string("expected '") + c + "' in the JSON text");
  ++position_;
  first_ = true;
}

void JsonScanner::ExpectEnd() {
  SkipSpace();
  if (position_ != text_.size()) Fail("text after the end of the JSON value");
}

bool JsonScanner::NextElement() {
  const bool first = first_;
  first_ = false;
  const char c = Peek();
  if (c == ']') {
    ++position_;
    return false;
  }
  if (!first) {
    if (c != ',') Fail("expected ',' or ']' in the JSON text");
    ++position_;
  }
  return true;
}

bool JsonScanner::NextMember(std::string& key) {
  const bool first = first_;
  first_ = false;
  const char c = Peek();
  if (c == '}') {
    ++position_;
    return false;
  }
  if (!first) {
    if (c != ',') Fail("expected ',' or '}' in the JSON text");
    ++position_;
  }
  key.assign(ReadString());
  if (Peek() != ':') Fail("expected ':' in the JSON text");
  ++position_;
  return true;
}

std::string_view JsonScanner::ReadString() {
  if (Peek() != '"') Fail("expected a JSON string");
  const size_t start = ++position_;
  while (position_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[position_]);
    if (c == '"') return text_.substr(start, position_++ - start);
    if (c == '\\') return ReadEscapedString(start);
    if (c < 0x20) Fail("control character in a JSON string");
    ++position_;
  }
  Fail("the JSON text ends inside a string");
}

uint32_t JsonScanner::ReadHex4() {
  if (text_.size() - position_ < 4) Fail("\\u needs four hexadecimal digits");
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text_[position_++];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) Fail("\\u needs four hexadecimal digits");
    value = value << 4 | static_cast<uint32_t>(digit);
  }
  return value;
}

std::string_view JsonScanner::ReadEscapedString(size_t start) {
  scratch_.assign(text_.substr(start, position_ - start));
  while (position_ < text_.size()) {
    const char c = text_[position_++];
    if (c == '"') return scratch_;
    if (static_cast<unsigned char>(c) < 0x20) Fail("control character in a JSON string");
    if (c != '\\') {
      scratch_ += c;
      continue;
    }
    if (position_ == text_.size()) break;
    const char escape = text_[position_++];
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    if (const size_t i = kLetters.find(escape); i != std::string_view::npos) {
      scratch_ += kValues[i];
      continue;
    }
    if (escape != 'u') Fail("unknown escape in a JSON string");
    char32_t code_point = ReadHex4();
    if (code_point >= 0xD800 && code_point < 0xDC00) {
      if (text_.substr(position_, 2) != "\\u") Fail("unpaired surrogate in a JSON string");
      position_ += 2;
      const char32_t low = ReadHex4();
      if (low < 0xDC00 || low > 0xDFFF) Fail("unpaired surrogate in a JSON string");
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
    } else if (code_point >= 0xDC00 && code_point <= 0xDFFF) {
      Fail("unpaired surrogate in a JSON string");
    }
    AppendCodePoint(code_point, scratch_);
  }
  Fail("the JSON text ends inside a string");
}

int64_t JsonScanner::ReadInteger() {
  const bool negative = Peek() == '-';
  if (negative) ++position_;
  const size_t start = position_;
  int64_t value = 0;
  while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
    if (position_ - start == 18) Fail("integer too large (limit 18 digits)");
    value = value * 10 + (text_[position_++] - '0');
  }
  if (position_ == start) Fail("expected an integer");
  if (text_[start] == '0' && position_ - start > 1) Fail("number with a leading zero");
  if (position_ < text_.size() && (text_[position_] == '.' || (text_[position_] | 0x20) == 'e')) {
    Fail("expected an integer, found a fraction or an exponent");
  }
  return negative ? -value : value;
}

double JsonScanner::ReadNumber() {
  Peek();
  const size_t start = position_;
  const auto digits = [this] {
    const size_t first = position_;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') ++position_;
    if (position_ == first) Fail("expected a number");
    return position_ - first;
  };
  const auto next_is = [this](char a, char b) {
    return position_ < text_.size() && (text_[position_] == a || text_[position_] == b);
  };
  if (next_is('-', '-')) ++position_;
  const bool zero = next_is('0', '0');
  if (digits() > 1 && zero) Fail("number with a leading zero");
  if (next_is('.', '.')) {
    ++position_;
    digits();
  }
  if (next_is('e', 'E')) {
    ++position_;
    if (next_is('+', '-')) ++position_;
    digits();
  }
  double value = 0;
  const auto result = std::from_chars(text_.data() + start, text_.data() + position_, value);
  if (result.ec != std::errc() || result.ptr != text_.data() + position_) Fail("number out of range");
  return value;
}

void JsonScanner::SkipString() {
  ++position_;
  while (position_ < text_.size()) {
    const char c = text_[position_++];
    if (c == '"') return;
    if (c == '\\') ++position_;
  }
  position_ = text_.size();
  Fail("the JSON text ends inside a string");
}

std::string_view JsonScanner::SkipValue() {
  Peek();
  const size_t start = position_;
  char closers[kMaxDepth];
  int depth = 0;
  do {
    const char c = Peek();
    if (c == '"') {
      SkipString();
    } else if (c == '{' || c == '[') {
      if (depth == kMaxDepth) Fail("JSON nested too deeply (limit " + std::to_string(kMaxDepth) + ")");
      closers[depth++] = c == '{' ? '}' : ']';
      ++position_;
    } else if (c == '}' || c == ']') {
      if (depth == 0 || closers[depth - 1] != c) Fail("misplaced closing bracket in the JSON text");
      --depth;
      ++position_;
    } else if (depth > 0 && (c == ',' || c == ':')) {
      ++position_;
    } else {
      const size_t begin = position_;
      while (position_ < text_.size() && std::string_view(" \n\r\t,:[]{}\"").find(text_[position_]) == text_.npos) {
        ++position_;
      }
      if (position_ == begin) Fail("expected a JSON value");
    }
  } while (depth > 0);
  return text_.substr(start, position_ - start);
}

RawMembers ReadMembers(std::string_view json, const std::string& name) {
  return ReadNestedMembers(json, "", name).outer;
}

NestedMembers ReadNestedMembers(std::string_view json, std::string_view key, const std::string& name) {
  NestedMembers members;
  JsonScanner scanner(json, name);
  scanner.BeginObject();
  for (std::string outer; scanner.NextMember(outer);) {
    if (key.empty() || outer != key) {
      members.outer.insert_or_assign(outer, scanner.SkipValue());
      continue;
    }
    members.has_inner = true;
    members.inner.clear();
    scanner.BeginObject();
    for (std::string inner; scanner.NextMember(inner);) members.inner.insert_or_assign(inner, scanner.SkipValue());
  }
  scanner.ExpectEnd();
  return members;
}

nlohmann::json ParseMember(const RawMembers& members, std::string_view key, const std::string& name) {
  const auto it = members.find(key);
  if (it == members.end()) return nullptr;
  nlohmann::json json = nlohmann::json::parse(ReplacePythonNumbers(it->second), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    throw TokenizerError("reading " + name + ": member " + std::string(key) + " is not valid JSON");
  }
  return json;
}

std::string OptionalString(const RawMembers& members, std::string_view key, const std::string& name) {
  const nlohmann::json json = ParseMember(members, key, name);
  if (json.is_null()) return "";
  if (!json.is_string()) throw TokenizerError("reading " + name + ": " + std::string(key) + " is not a string");
  return json.get<std::string>();
}

bool OptionalBool(const RawMembers& members, std::string_view key, const std::string& name) {
  const nlohmann::json json = ParseMember(members, key, name);
  if (json.is_null()) return false;
  if (!json.is_boolean()) throw TokenizerError("reading " + name + ": " + std::string(key) + " is not true or false");
  return json.get<bool>();
}

int64_t OptionalInteger(const RawMembers& members, std::string_view key, const std::string& name, int64_t limit,
                        int64_t fallback) {
  const nlohmann::json json = ParseMember(members, key, name);
  if (json.is_null()) return fallback;
  const bool fits = json.is_number_unsigned() && json.get<uint64_t>() < static_cast<uint64_t>(limit);
  if (!fits) {
    throw TokenizerError("reading " + name + ": " + std::string(key) + " is not an integer in 0.." +
                         std::to_string(limit - 1));
  }
  return static_cast<int64_t>(json.get<uint64_t>());
}

}  // namespace vllm::tokenizer
