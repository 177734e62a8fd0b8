#include "engine/tool_calls/readers/json_calls_reader.h"

#include "engine/tool_calls/text/json_escape.h"

namespace vllm {
namespace {

constexpr size_t kMaxKeyBytes = 128;

}  // namespace

JsonCallsReader::JsonCallsReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools,
                                 CallSink& sink)
    : format_(format), tools_(tools), sink_(sink), is_marked_(trigger != "{") {
  const CallSyntax& syntax = format.syntax;
  if (!StripSpace(syntax.end).empty()) ends_.push_back(StripSpace(syntax.end));
  for (const std::string_view end : ListedTexts(format.more_ends)) ends_.push_back(end);
  if (trigger == syntax.trigger && syntax.begin.size() > trigger.size()) {
    const std::string_view prefix = StripSpace(syntax.begin.substr(trigger.size()));
    if (!prefix.empty()) {
      matcher_.Reset({prefix});
      state_ = State::kPrefix;
    }
  }
}

bool JsonCallsReader::IsCallKey() const {
  return key_ == "name" || key_ == "tool_name" || key_ == "function" || key_ == "arguments" || key_ == "parameters" ||
         key_ == "type" || key_ == "id" || key_ == "tool_call_id";
}

ReadResult JsonCallsReader::Feed(char c) { return state_ >= State::kFirstKey ? FeedObject(c) : FeedBetween(c); }

ReadResult JsonCallsReader::BeginObject() {
  name_.clear();
  arguments_.clear();
  has_name_ = has_arguments_ = is_started_ = is_nested_ = false;
  state_ = State::kFirstKey;
  return ReadResult::kMore;
}

ReadResult JsonCallsReader::FeedBetween(char c) {
  if (state_ == State::kPrefix) {
    const LiteralMatcher::Result result = matcher_.Feed(c);
    if (result == LiteralMatcher::Result::kMatched) state_ = State::kStart;
    return result == LiteralMatcher::Result::kFailed ? ReadResult::kInvalid : ReadResult::kMore;
  }
  if (state_ == State::kEnd) return FeedSectionEnd(matcher_, c);
  if (state_ == State::kNextObject && matcher_.has_begun()) return FeedSectionEnd(matcher_, c);
  if (IsCallSpace(c)) return ReadResult::kMore;
  switch (state_) {
    case State::kStart:
      if (c == '{') return BeginObject();
      if (c != '[') return ReadResult::kInvalid;
      is_array_ = true;
      state_ = State::kElement;
      return ReadResult::kMore;
    case State::kElement:
    case State::kNextElement:
      if (c == ']' && (state_ == State::kNextElement || !has_calls_)) {
        if (format_.is_bare && !has_calls_) return ReadResult::kInvalid;
        if (ends_.empty()) return ReadResult::kDone;
        matcher_.Reset(ends_);
        state_ = State::kEnd;
        return ReadResult::kClosing;
      }
      if (state_ == State::kElement) return c == '{' ? BeginObject() : ReadResult::kInvalid;
      if (c != ',') return ReadResult::kInvalid;
      state_ = State::kElement;
      return ReadResult::kMore;
    default:
      break;
  }
  // kNextObject
  if (c == ';') {
    state_ = State::kStart;
    return ReadResult::kMore;
  }
  return c == '{' ? BeginObject() : FeedSectionEnd(matcher_, c);
}

ReadResult JsonCallsReader::EndName() {
  if (name_.empty()) return ReadResult::kInvalid;
  if (format_.is_bare && tools_.Find(name_) == nullptr) return ReadResult::kInvalid;
  has_name_ = true;
  state_ = State::kAfterValue;
  Emit();
  return ReadResult::kMore;
}

void JsonCallsReader::Emit() {
  if (!has_name_ || !has_arguments_) return;
  if (!is_started_) sink_.StartCall(name_, "");
  is_started_ = true;
  if (!arguments_.empty()) sink_.AddArguments(arguments_);
  arguments_.clear();
}

ReadResult JsonCallsReader::EndObject() {
  if (is_nested_) {
    is_nested_ = false;
    state_ = State::kAfterValue;
    return ReadResult::kMore;
  }
  if (!has_name_) return ReadResult::kInvalid;
  if (!has_arguments_ && format_.is_bare) return ReadResult::kInvalid;
  if (!has_arguments_) arguments_ = "{}";
  has_arguments_ = true;
  Emit();
  sink_.EndCall();
  has_calls_ = true;
  state_ = is_array_ ? State::kNextElement : State::kNextObject;
  if (!is_array_) matcher_.Reset(ends_);
  return ReadResult::kMore;
}

ReadResult JsonCallsReader::BeginValue(char c) {
  const bool is_name = key_ == "name" || key_ == "tool_name" || (key_ == "function" && c == '"');
  const bool is_arguments = key_ == "arguments" || key_ == "parameters";
  if (key_ == "function" && c == '{' && !is_nested_) {
    is_nested_ = true;
    state_ = State::kFirstKey;
    return ReadResult::kMore;
  }
  if (is_name) {
    if (c != '"' || has_name_) return ReadResult::kInvalid;
    string_ = JsonStringDecoder();
    state_ = State::kName;
    return ReadResult::kMore;
  }
  scanner_ = JsonTextScanner();
  if (!is_arguments) {
    state_ = State::kOther;
    return FeedObject(c);  // once
  }
  if (has_arguments_) return ReadResult::kInvalid;
  if (c == '"') {
    string_ = JsonStringDecoder();
    state_ = State::kQuotedArguments;
    return ReadResult::kMore;
  }
  if (c != '{' && c != 'n') return ReadResult::kInvalid;
  has_arguments_ = true;
  state_ = State::kArguments;
  return FeedArguments(c);
}

ReadResult JsonCallsReader::FeedArguments(char c) {
  const JsonTextScanner::Result result = scanner_.Feed(c, arguments_);
  if (result == JsonTextScanner::Result::kInvalid || result == JsonTextScanner::Result::kDoneBefore) {
    return ReadResult::kInvalid;
  }
  if (scanner_.type() == kJsonNull) {
    // null stands for no arguments.
    if (result != JsonTextScanner::Result::kDone) return ReadResult::kMore;
    arguments_ = "{}";
  }
  Emit();
  if (result == JsonTextScanner::Result::kDone) state_ = State::kAfterValue;
  return ReadResult::kMore;
}

ReadResult JsonCallsReader::FeedQuotedArguments(char c) {
  scratch_.clear();
  const JsonStringDecoder::Result result = string_.Feed(c, scratch_);
  if (result == JsonStringDecoder::Result::kInvalid) return ReadResult::kInvalid;
  for (const char decoded : scratch_) {
    if (scanner_.is_complete()) {
      if (!IsCallSpace(decoded)) return ReadResult::kInvalid;
      continue;
    }
    if (scanner_.type() == 0 && decoded != '{' && !IsCallSpace(decoded)) return ReadResult::kInvalid;
    if (scanner_.Feed(decoded, arguments_) == JsonTextScanner::Result::kInvalid) return ReadResult::kInvalid;
    if (scanner_.type() != 0) has_arguments_ = true;
    Emit();
  }
  if (result == JsonStringDecoder::Result::kMore) return ReadResult::kMore;
  if (scanner_.type() == 0) {
    arguments_ = "{}";
    has_arguments_ = true;
    Emit();
  } else if (!scanner_.is_complete()) {
    return ReadResult::kInvalid;
  }
  state_ = State::kAfterValue;
  return ReadResult::kMore;
}

ReadResult JsonCallsReader::FeedObject(char c) {
  switch (state_) {
    case State::kKey:
      switch (string_.Feed(c, key_)) {
        case JsonStringDecoder::Result::kInvalid:
          return ReadResult::kInvalid;
        case JsonStringDecoder::Result::kDone:
          // Rejects other JSON objects early.
          if (format_.is_bare && !IsCallKey()) return ReadResult::kInvalid;
          state_ = State::kColon;
          return ReadResult::kMore;
        case JsonStringDecoder::Result::kMore:
          return key_.size() > kMaxKeyBytes ? ReadResult::kInvalid : ReadResult::kMore;
      }
      return ReadResult::kInvalid;
    case State::kName:
      switch (string_.Feed(c, name_)) {
        case JsonStringDecoder::Result::kInvalid:
          return ReadResult::kInvalid;
        case JsonStringDecoder::Result::kDone:
          return EndName();
        case JsonStringDecoder::Result::kMore:
          return name_.size() > kMaxToolNameBytes ? ReadResult::kInvalid : ReadResult::kMore;
      }
      return ReadResult::kInvalid;
    case State::kArguments:
      return FeedArguments(c);
    case State::kQuotedArguments:
      return FeedQuotedArguments(c);
    case State::kOther:
      scratch_.clear();
      switch (scanner_.Feed(c, scratch_)) {
        case JsonTextScanner::Result::kInvalid:
          return ReadResult::kInvalid;
        case JsonTextScanner::Result::kMore:
          return ReadResult::kMore;
        case JsonTextScanner::Result::kDone:
          state_ = State::kAfterValue;
          return ReadResult::kMore;
        case JsonTextScanner::Result::kDoneBefore:
          state_ = State::kAfterValue;  // to which this byte belongs
          break;
      }
      break;
    default:
      break;
  }
  if (IsCallSpace(c)) return ReadResult::kMore;
  switch (state_) {
    case State::kFirstKey:
      if (c == '}') return EndObject();
      [[fallthrough]];
    case State::kNextKey:
      if (c != '"') return ReadResult::kInvalid;
      key_.clear();
      string_ = JsonStringDecoder();
      state_ = State::kKey;
      return ReadResult::kMore;
    case State::kColon:
      if (c != ':') return ReadResult::kInvalid;
      state_ = State::kValue;
      return ReadResult::kMore;
    case State::kValue:
      return BeginValue(c);
    case State::kAfterValue:
      if (c == '}') return EndObject();
      state_ = State::kNextKey;
      return c == ',' ? ReadResult::kMore : ReadResult::kInvalid;
    default:
      return ReadResult::kInvalid;
  }
}

bool JsonCallsReader::Finish() {
  // Calls that have ended are complete, also if the array is not.
  return state_ == State::kEnd || state_ == State::kNextObject || state_ == State::kNextElement;
}

std::string_view JsonCallsReader::expected() const {
  switch (state_) {
    case State::kArguments:
    case State::kQuotedArguments:
      return "a JSON object as arguments";
    case State::kName:
    case State::kColon:
    case State::kValue:
      return "the name and arguments of a call";
    default:
      return "a JSON object with \"name\" and \"arguments\"";
  }
}

}  // namespace vllm
