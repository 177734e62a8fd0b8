#include "engine/tool_calls/text/python_literal_reader.h"

#include <string_view>

#include "engine/tool_calls/text/json_escape.h"
#include "engine/tool_calls/text/json_text_scanner.h"

namespace vllm {
namespace {

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '+' || c == '-';
}

}  // namespace

PythonLiteralReader::Result PythonLiteralReader::EndValue() {
  if (stack_.empty()) {
    state_ = State::kEnd;
    return Result::kDone;
  }
  state_ = is_key_ ? State::kColon : State::kAfterElement;
  is_key_ = false;
  is_first_ = false;
  return Result::kMore;
}

PythonLiteralReader::Result PythonLiteralReader::Close(char c, std::string& out) {
  const char open = c == ']' ? '[' : c == ')' ? '(' : '{';
  if (stack_.empty() || stack_.back() != open) return Result::kInvalid;
  stack_.pop_back();
  out += open == '{' ? '}' : ']';
  return EndValue();
}

PythonLiteralReader::Result PythonLiteralReader::BeginValue(char c, std::string& out) {
  if (c == ']' || c == ')' || c == '}') {
    // An empty container, or a comma after the last element.
    return state_ == State::kKey || (!stack_.empty() && stack_.back() != '{') ? Close(c, out) : Result::kInvalid;
  }
  is_key_ = state_ == State::kKey;
  const bool follows_colon = !is_key_ && !stack_.empty() && stack_.back() == '{';
  if (!is_first_ && !follows_colon && !stack_.empty()) out += ", ";
  if (c == '\'' || c == '"') {
    quote_ = c;
    out += '"';
    state_ = State::kString;
    return Result::kMore;
  }
  if (c == '[' || c == '(' || c == '{') {
    if (is_key_ || stack_.size() >= kMaxArgumentDepth) return Result::kInvalid;
    stack_ += c;
    out += c == '{' ? '{' : '[';
    state_ = c == '{' ? State::kKey : State::kValue;
    is_first_ = true;
    return Result::kMore;
  }
  if (is_key_ || !IsWordByte(c)) return Result::kInvalid;
  word_ = c;
  state_ = State::kWord;
  return Result::kMore;
}

bool PythonLiteralReader::EndWord(std::string& out) {
  std::string word = word_;
  if (word == "True" || word == "true") {
    out += "true";
    return true;
  }
  if (word == "False" || word == "false") {
    out += "false";
    return true;
  }
  if (word == "None" || word == "null") {
    out += "null";
    return true;
  }
  // Python writes numbers that JSON does not have: +1, .5, 5. and 1_000.
  if (word.starts_with('+')) word.erase(0, 1);
  for (size_t i = 1; i + 1 < word.size(); ++i) {
    if (word[i] == '_' && word[i - 1] >= '0' && word[i - 1] <= '9' && word[i + 1] >= '0' && word[i + 1] <= '9') {
      word.erase(i, 1);
    }
  }
  const size_t point = word.find('.');
  if (point != std::string::npos) {
    const bool digit_after = point + 1 < word.size() && word[point + 1] >= '0' && word[point + 1] <= '9';
    const bool digit_before = point > 0 && word[point - 1] >= '0' && word[point - 1] <= '9';
    if (!digit_after && !digit_before) return false;
    if (!digit_after) word.insert(point + 1, "0");
    if (!digit_before) word.insert(point, "0");
  }
  if ((JsonTypeOf(word) & (kJsonInteger | kJsonNumber)) == 0) return false;
  out += word;
  return true;
}

void PythonLiteralReader::EndCodePoint(std::string& out) {
  // JSON writes characters above U+FFFF as two escapes.
  if (code_point_ >= 0xD800 && code_point_ < 0xDC00) {
    if (high_surrogate_ != 0) AppendScalarValue(0xFFFD, out);
    high_surrogate_ = code_point_;
    return;
  }
  if (code_point_ >= 0xDC00 && code_point_ < 0xE000 && high_surrogate_ != 0) {
    code_point_ = 0x10000 + ((high_surrogate_ - 0xD800) << 10) + (code_point_ - 0xDC00);
  } else if (high_surrogate_ != 0) {
    AppendScalarValue(0xFFFD, out);
  }
  high_surrogate_ = 0;
  std::string character;
  AppendScalarValue(code_point_, character);
  AppendJsonEscaped(character, out);
}

bool PythonLiteralReader::FeedDigits(char c, std::string& out) {
  const int digit = HexDigit(c);
  if (digit < 0 || digit >= base_) {
    if (base_ == 16) return false;  // fixed lengths
    EndCodePoint(out);
    return FeedString(c, out) != Result::kInvalid;
  }
  code_point_ = code_point_ * static_cast<uint32_t>(base_) + static_cast<uint32_t>(digit);
  if (--num_digits_left_ == 0) {
    EndCodePoint(out);
    state_ = State::kString;
  }
  return true;
}

bool PythonLiteralReader::FeedEscape(char c, std::string& out) {
  state_ = State::kString;
  code_point_ = 0;
  base_ = 16;
  num_digits_left_ = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (num_digits_left_ > 0) {
    state_ = State::kDigits;
    return true;
  }
  if (high_surrogate_ != 0) AppendScalarValue(0xFFFD, out);
  high_surrogate_ = 0;
  if (c == '\n') return true;  // continues the line
  constexpr std::string_view kEscapes = "abfnrtv\\'\"/";
  const size_t index = kEscapes.find(c);
  if (index != std::string_view::npos) {
    AppendJsonEscaped("\a\b\f\n\r\t\v\\'\"/"[index], out);
  } else if (c >= '0' && c <= '7') {
    // Up to three octal digits.
    base_ = 8;
    code_point_ = static_cast<uint32_t>(c - '0');
    num_digits_left_ = 2;
    state_ = State::kDigits;
  } else {
    // Python keeps the backslash of an unknown escape.
    out += "\\\\";
    AppendJsonEscaped(c, out);
  }
  return true;
}

PythonLiteralReader::Result PythonLiteralReader::FeedString(char c, std::string& out) {
  state_ = State::kString;
  if (c == '\\') {
    state_ = State::kEscape;
    return Result::kMore;
  }
  if (high_surrogate_ != 0) AppendScalarValue(0xFFFD, out);
  high_surrogate_ = 0;
  if (c == quote_) {
    out += '"';
    return EndValue();
  }
  AppendJsonEscaped(c, out);
  return Result::kMore;
}

PythonLiteralReader::Result PythonLiteralReader::Feed(char c, std::string& out) {
  switch (state_) {
    case State::kString:
      return FeedString(c, out);
    case State::kEscape:
      return FeedEscape(c, out) ? Result::kMore : Result::kInvalid;
    case State::kDigits: {
      if (!FeedDigits(c, out)) return Result::kInvalid;
      return state_ == State::kEnd ? Result::kDone : Result::kMore;
    }
    case State::kWord: {
      if (IsWordByte(c)) {
        word_ += c;
        return word_.size() > kMaxNumberBytes ? Result::kInvalid : Result::kMore;
      }
      if (!EndWord(out)) return Result::kInvalid;
      if (EndValue() == Result::kDone) return Result::kDoneBefore;
      return Feed(c, out);  // once: the state is no longer kWord
    }
    default:
      break;
  }
  if (IsCallSpace(c)) return Result::kMore;
  switch (state_) {
    case State::kValue:
    case State::kKey:
      return BeginValue(c, out);
    case State::kColon:
      if (c != ':') return Result::kInvalid;
      out += ": ";
      state_ = State::kValue;
      return Result::kMore;
    case State::kAfterElement:
      if (c != ',') return c == ']' || c == ')' || c == '}' ? Close(c, out) : Result::kInvalid;
      state_ = stack_.back() == '{' ? State::kKey : State::kValue;
      return Result::kMore;
    default:
      return Result::kInvalid;
  }
}

bool PythonLiteralReader::Finish(std::string& out) {
  if (state_ == State::kWord && stack_.empty()) {
    state_ = State::kEnd;
    return EndWord(out);
  }
  return state_ == State::kEnd;
}

std::string PythonLiteralToJson(std::string_view text) {
  PythonLiteralReader reader;
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (reader.Feed(text[i], out)) {
      case PythonLiteralReader::Result::kMore:
        break;
      case PythonLiteralReader::Result::kDone:
        return text.find_first_not_of(" \t\r\n", i + 1) == std::string_view::npos ? out : "";
      case PythonLiteralReader::Result::kDoneBefore:
        return text.find_first_not_of(" \t\r\n", i) == std::string_view::npos ? out : "";
      case PythonLiteralReader::Result::kInvalid:
        return "";
    }
  }
  return reader.Finish(out) ? out : "";
}

}  // namespace vllm
