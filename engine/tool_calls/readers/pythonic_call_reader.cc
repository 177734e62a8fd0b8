#include "engine/tool_calls/readers/pythonic_call_reader.h"

#include "engine/tool_calls/text/json_escape.h"

namespace vllm {
namespace {

bool IsIdentifierByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsNameByte(char c) { return IsIdentifierByte(c) || c == '.' || c == '-'; }

}  // namespace

PythonicCallReader::PythonicCallReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools,
                                       CallSink& sink)
    : format_(format), tools_(tools), sink_(sink) {
  if (trigger == "[") return;
  is_call_ = true;
  ends_ = ListedTexts(format.more_ends);
}

void PythonicCallReader::Start() {
  if (!is_started_) sink_.StartCall(name_, "");
  is_started_ = true;
}

ReadResult PythonicCallReader::FeedName(char c) {
  if (IsNameByte(c)) {
    name_ += c;
    return name_.size() > kMaxToolNameBytes ? ReadResult::kInvalid : ReadResult::kMore;
  }
  if (c != '(') return ReadResult::kInvalid;
  if (format_.is_bare && tools_.Find(name_) == nullptr) return ReadResult::kInvalid;
  is_call_ = true;
  is_started_ = false;
  num_arguments_ = 0;
  state_ = State::kFirstKey;
  return ReadResult::kMore;
}

ReadResult PythonicCallReader::EndCall() {
  Start();
  sink_.AddArguments(num_arguments_ == 0 ? "{}" : "}");
  sink_.EndCall();
  has_calls_ = true;
  state_ = State::kAfterCall;
  matcher_.Reset(ends_);
  return ReadResult::kMore;
}

ReadResult PythonicCallReader::FeedKey(char c) {
  if (IsIdentifierByte(c)) {
    key_ += c;
    return key_.size() > kMaxKeyBytes ? ReadResult::kInvalid : ReadResult::kMore;
  }
  state_ = State::kEquals;
  if (IsCallSpace(c)) return ReadResult::kMore;
  if (c != '=') return ReadResult::kInvalid;
  Start();
  sink_.AddArguments((num_arguments_++ == 0 ? "{" : ", ") + JsonStringText(key_) + ": ");
  literal_ = PythonLiteralReader();
  state_ = State::kValue;
  return ReadResult::kMore;
}

ReadResult PythonicCallReader::FeedValue(char c) {
  scratch_.clear();
  const PythonLiteralReader::Result result = literal_.Feed(c, scratch_);
  if (result == PythonLiteralReader::Result::kInvalid) return ReadResult::kInvalid;
  if (!scratch_.empty()) sink_.AddArguments(scratch_);
  if (result == PythonLiteralReader::Result::kMore) return ReadResult::kMore;
  state_ = State::kAfterValue;
  return result == PythonLiteralReader::Result::kDone ? ReadResult::kMore : Feed(c);  // once
}

ReadResult PythonicCallReader::CloseBracket() {
  if (ends_.empty()) return ReadResult::kDone;
  matcher_.Reset(ends_);
  state_ = State::kEnd;
  return ReadResult::kClosing;
}

ReadResult PythonicCallReader::FeedAfterCall(char c) {
  if (IsCallSpace(c)) return ReadResult::kMore;
  if (has_bracket_) {
    if (c == ']') return CloseBracket();
    state_ = State::kBeforeName;
    return c == ',' ? ReadResult::kMore : ReadResult::kInvalid;
  }
  if (matcher_.has_begun() || !IsIdentifierByte(c)) return FeedSectionEnd(matcher_, c);
  name_ = c;
  state_ = State::kName;
  return ReadResult::kMore;
}

ReadResult PythonicCallReader::Feed(char c) {
  switch (state_) {
    case State::kName:
      return FeedName(c);
    case State::kKey:
      return FeedKey(c);
    case State::kValue:
      return FeedValue(c);
    case State::kAfterCall:
      return FeedAfterCall(c);
    case State::kEnd:
      return FeedSectionEnd(matcher_, c);
    default:
      break;
  }
  if (IsCallSpace(c)) return ReadResult::kMore;
  switch (state_) {
    case State::kStart:
      if (c == '[') {
        has_bracket_ = true;
        state_ = State::kBeforeName;
        return ReadResult::kMore;
      }
      [[fallthrough]];
    case State::kBeforeName:
      if (c == ']' && has_bracket_ && (has_calls_ || !format_.is_bare)) return CloseBracket();
      if (!IsIdentifierByte(c)) return ReadResult::kInvalid;
      name_ = c;
      state_ = State::kName;
      return ReadResult::kMore;
    case State::kEquals:
      return IsIdentifierByte(c) ? ReadResult::kInvalid : FeedKey(c);
    case State::kAfterValue:
      state_ = State::kNextKey;
      if (c == ',') return ReadResult::kMore;
      return c == ')' ? EndCall() : ReadResult::kInvalid;
    default:
      break;
  }
  // kFirstKey, kNextKey
  if (c == ')') return EndCall();
  if (!IsIdentifierByte(c)) return ReadResult::kInvalid;
  key_ = c;
  state_ = State::kKey;
  return ReadResult::kMore;
}

bool PythonicCallReader::Finish() { return state_ == State::kAfterCall || state_ == State::kEnd; }

std::string_view PythonicCallReader::expected() const {
  switch (state_) {
    case State::kValue:
      return "a Python literal as argument";
    case State::kFirstKey:
    case State::kNextKey:
    case State::kKey:
    case State::kEquals:
    case State::kAfterValue:
      return "arguments NAME=VALUE";
    default:
      return "a call NAME(...)";
  }
}

}  // namespace vllm
