#include "engine/tool_calls/text/json_text_scanner.h"

#include "engine/tool_calls/text/json_escape.h"

namespace vllm {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonTextScanner::Result JsonTextScanner::EndValue() {
  if (stack_.empty()) {
    state_ = State::kEnd;
    return Result::kDone;
  }
  state_ = State::kAfterElement;
  return Result::kMore;
}

JsonTextScanner::Result JsonTextScanner::Open(char c, State state) {
  if (stack_.size() >= kMaxArgumentDepth) return Result::kInvalid;
  stack_ += c;
  state_ = state;
  return Result::kMore;
}

JsonTextScanner::Result JsonTextScanner::Close(char open) {
  if (stack_.empty() || stack_.back() != open) return Result::kInvalid;
  stack_.pop_back();
  return EndValue();
}

JsonTextScanner::Result JsonTextScanner::BeginValue(char c) {
  is_key_ = false;
  literal_size_ = 1;
  switch (c) {
    case '{':
      SetType(kJsonObject);
      return Open(c, State::kFirstKey);
    case '[':
      SetType(kJsonArray);
      return Open(c, State::kFirstElement);
    case '"':
      SetType(kJsonString);
      state_ = State::kString;
      return Result::kMore;
    case 't':
    case 'f':
      SetType(kJsonBoolean);
      literal_ = c == 't' ? "true" : "false";
      state_ = State::kLiteral;
      return Result::kMore;
    case 'n':
      SetType(kJsonNull);
      literal_ = "null";
      state_ = State::kLiteral;
      return Result::kMore;
    default:
      break;
  }
  if (c != '-' && !IsDigit(c)) return Result::kInvalid;
  SetType(kJsonInteger);
  state_ = c == '-' ? State::kMinus : c == '0' ? State::kZero : State::kInteger;
  return Result::kMore;
}

JsonTextScanner::Result JsonTextScanner::FeedHex(char c) {
  const int digit = HexDigit(c);
  if (digit < 0) return Result::kInvalid;
  hex_ = hex_ * 16 + static_cast<uint32_t>(digit);
  if (++num_hex_ < 4) return Result::kMore;
  const bool is_low = hex_ >= 0xDC00 && hex_ < 0xE000;
  if (is_low != is_low_surrogate_) return Result::kInvalid;
  is_low_surrogate_ = hex_ >= 0xD800 && hex_ < 0xDC00;
  state_ = is_low_surrogate_ ? State::kLowSurrogateSlash : State::kString;
  return Result::kMore;
}

JsonTextScanner::Result JsonTextScanner::FeedNumber(char c) {
  if (IsDigit(c)) {
    switch (state_) {
      case State::kMinus:
        state_ = c == '0' ? State::kZero : State::kInteger;
        return Result::kMore;
      case State::kPoint:
        state_ = State::kFraction;
        return Result::kMore;
      case State::kExponent:
      case State::kExponentSign:
        state_ = State::kExponentDigits;
        return Result::kMore;
      case State::kZero:
        return Result::kInvalid;
      default:
        return Result::kMore;
    }
  }
  const bool is_whole = state_ == State::kZero || state_ == State::kInteger;
  if (c == '.' && is_whole) {
    SetType(kJsonNumber);
    state_ = State::kPoint;
    return Result::kMore;
  }
  if ((c == 'e' || c == 'E') && (is_whole || state_ == State::kFraction)) {
    SetType(kJsonNumber);
    state_ = State::kExponent;
    return Result::kMore;
  }
  if ((c == '+' || c == '-') && state_ == State::kExponent) {
    state_ = State::kExponentSign;
    return Result::kMore;
  }
  if (!IsCompleteNumber()) return Result::kInvalid;
  EndValue();
  return Result::kDoneBefore;
}

JsonTextScanner::Result JsonTextScanner::Feed(char c, std::string& out) {
  const bool is_in_number = state_ >= State::kMinus && state_ <= State::kExponentDigits;
  if (is_in_number) {
    const Result result = FeedNumber(c);
    if (result != Result::kDoneBefore || state_ == State::kEnd) {
      if (result == Result::kMore) out += c;
      return result;
    }
    // The number is inside a container, to which this byte belongs.
  }
  if (state_ == State::kString && static_cast<unsigned char>(c) < 0x20) {
    AppendJsonEscaped(c, out);
    return Result::kMore;
  }
  const bool is_between = state_ == State::kValue || state_ == State::kFirstElement || state_ == State::kFirstKey ||
                          state_ == State::kKey || state_ == State::kColon || state_ == State::kAfterElement;
  if (is_between && IsCallSpace(c)) {
    if (type_ != 0) out += c;
    return Result::kMore;
  }
  out += c;
  switch (state_) {
    case State::kValue:
      return BeginValue(c);
    case State::kFirstElement:
      return c == ']' ? Close('[') : BeginValue(c);
    case State::kFirstKey:
      if (c == '}') return Close('{');
      [[fallthrough]];
    case State::kKey:
      if (c != '"') return Result::kInvalid;
      is_key_ = true;
      state_ = State::kString;
      return Result::kMore;
    case State::kColon:
      if (c != ':') return Result::kInvalid;
      state_ = State::kValue;
      return Result::kMore;
    case State::kAfterElement:
      if (c == '}') return Close('{');
      if (c == ']') return Close('[');
      if (c != ',') return Result::kInvalid;
      state_ = stack_.back() == '{' ? State::kKey : State::kValue;
      return Result::kMore;
    case State::kString:
      if (c == '\\') {
        state_ = State::kEscape;
      } else if (c == '"') {
        if (!is_key_) return EndValue();
        state_ = State::kColon;
      }
      return Result::kMore;
    case State::kEscape:
      if (c == 'u') {
        hex_ = 0;
        num_hex_ = 0;
        state_ = State::kHex;
        return Result::kMore;
      }
      if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) return Result::kInvalid;
      state_ = State::kString;
      return Result::kMore;
    case State::kHex:
      return FeedHex(c);
    case State::kLowSurrogateSlash:
      state_ = State::kLowSurrogateU;
      return c == '\\' ? Result::kMore : Result::kInvalid;
    case State::kLowSurrogateU:
      hex_ = 0;
      num_hex_ = 0;
      state_ = State::kHex;
      return c == 'u' ? Result::kMore : Result::kInvalid;
    case State::kLiteral:
      if (c != literal_[literal_size_]) return Result::kInvalid;
      return ++literal_size_ == literal_.size() ? EndValue() : Result::kMore;
    default:
      return Result::kInvalid;  // kEnd: the caller fed more than one value
  }
}

JsonTypes JsonTypeOf(std::string_view text) {
  JsonTextScanner scanner;
  std::string out;
  bool is_done = false;
  for (const char c : text) {
    if (is_done) {
      if (!IsCallSpace(c)) return 0;
      continue;
    }
    out.clear();
    switch (scanner.Feed(c, out)) {
      case JsonTextScanner::Result::kMore:
        // The text must be valid JSON without corrections.
        if (out.size() > 1) return 0;
        break;
      case JsonTextScanner::Result::kDone:
        is_done = true;
        break;
      case JsonTextScanner::Result::kDoneBefore:
        if (!IsCallSpace(c)) return 0;
        is_done = true;
        break;
      case JsonTextScanner::Result::kInvalid:
        return 0;
    }
  }
  return scanner.is_complete() ? scanner.type() : JsonTypes{0};
}

}  // namespace vllm
