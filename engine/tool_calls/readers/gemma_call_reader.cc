#include "engine/tool_calls/readers/gemma_call_reader.h"

#include "engine/tool_calls/text/json_escape.h"
#include "engine/tool_calls/text/tool_value.h"

namespace vllm {

GemmaCallReader::GemmaCallReader(const ToolCallFormat& format, const ToolSet& tools, CallSink& sink)
    : tools_(tools),
      sink_(sink),
      prefix_(format.syntax.name_prefix),
      end_(format.syntax.end),
      string_mark_(format.syntax.string_mark) {
  matcher_.Reset({prefix_});
}

ReadResult GemmaCallReader::FeedPrefix(char c) {
  switch (matcher_.Feed(c)) {
    case LiteralMatcher::Result::kMore:
      return ReadResult::kMore;
    case LiteralMatcher::Result::kFailed:
      return state_ == State::kPrefix ? ReadResult::kInvalid : ReadResult::kNotPart;
    case LiteralMatcher::Result::kMatched:
      break;
  }
  if (state_ == State::kAfterCall && matcher_.index() == 0) return ReadResult::kDone;
  name_.clear();
  state_ = State::kName;
  return ReadResult::kMore;
}

ReadResult GemmaCallReader::FeedName(char c) {
  if (IsToolName(std::string_view(&c, 1))) {
    name_ += c;
    return name_.size() > kMaxToolNameBytes ? ReadResult::kInvalid : ReadResult::kMore;
  }
  if (c != '{' || name_.empty()) return ReadResult::kInvalid;
  sink_.StartCall(name_, "");
  is_first_ = true;
  return Open(c);
}

ReadResult GemmaCallReader::Open(char c) {
  if (stack_.size() >= kMaxArgumentDepth) return ReadResult::kInvalid;
  stack_ += c;
  sink_.AddArguments(std::string_view(&c, 1));
  is_first_ = true;
  key_.clear();
  state_ = c == '{' ? State::kKey : State::kValue;
  return ReadResult::kMore;
}

ReadResult GemmaCallReader::Close(char c) {
  if (stack_.empty() || stack_.back() != (c == '}' ? '{' : '[')) return ReadResult::kInvalid;
  stack_.pop_back();
  sink_.AddArguments(std::string_view(&c, 1));
  is_first_ = false;
  state_ = State::kAfterValue;
  if (!stack_.empty()) return ReadResult::kMore;
  sink_.EndCall();
  state_ = State::kAfterCall;
  matcher_.Reset({end_, prefix_});
  return ReadResult::kMore;
}

void GemmaCallReader::BeginElement() {
  // The separator of an object's member has been written before its key.
  if (stack_.back() == '[' && !is_first_) sink_.AddArguments(", ");
  is_first_ = false;
}

ReadResult GemmaCallReader::FeedKey(char c) {
  if (key_.empty()) {
    if (IsCallSpace(c)) return ReadResult::kMore;
    if (c == '}') return Close(c);
    if (c == '"') {
      string_ = JsonStringDecoder();
      state_ = State::kQuotedKey;
      return ReadResult::kMore;
    }
  }
  if (c != ':') {
    key_ += c;
    if (key_.size() > kMaxKeyBytes || c == '{' || c == '}') return ReadResult::kInvalid;
    return ReadResult::kMore;
  }
  std::string_view key = StripSpace(key_);
  const std::string_view mark = string_mark_;
  if (key.size() >= 2 * mark.size() && key.starts_with(mark) && key.ends_with(mark)) {
    key = key.substr(mark.size(), key.size() - 2 * mark.size());
  }
  return key.empty() ? ReadResult::kInvalid : EndKey(key);
}

ReadResult GemmaCallReader::FeedQuotedKey(char c) {
  if (state_ == State::kColon) {
    if (c == ':') return EndKey(key_);
    return IsCallSpace(c) ? ReadResult::kMore : ReadResult::kInvalid;
  }
  switch (string_.Feed(c, key_)) {
    case JsonStringDecoder::Result::kInvalid:
      return ReadResult::kInvalid;
    case JsonStringDecoder::Result::kDone:
      state_ = State::kColon;
      break;
    case JsonStringDecoder::Result::kMore:
      break;
  }
  return ReadResult::kMore;
}

ReadResult GemmaCallReader::EndKey(std::string_view key) {
  if (stack_.size() == 1) top_key_ = std::string(key);
  sink_.AddArguments((is_first_ ? "" : ", ") + JsonStringText(key) + ": ");
  is_first_ = false;
  state_ = State::kValue;
  return ReadResult::kMore;
}

ReadResult GemmaCallReader::FeedValue(char c) {
  if (IsCallSpace(c)) return ReadResult::kMore;
  if (c == '{' || c == '[') {
    BeginElement();
    return Open(c);
  }
  if (c == ']' && stack_.back() == '[') return Close(c);
  if (c == '}' || c == ']' || c == ',') return ReadResult::kInvalid;
  BeginElement();
  word_ = c;
  state_ = State::kWord;
  if (c != '"') return ReadResult::kMore;
  scanner_ = JsonTextScanner();
  scratch_.clear();
  scanner_.Feed(c, scratch_);
  sink_.AddArguments(scratch_);
  state_ = State::kQuoted;
  return ReadResult::kMore;
}

ReadResult GemmaCallReader::FeedWord(char c) {
  const bool may_be_mark = string_mark_.starts_with(word_);
  if (may_be_mark && word_.size() < string_mark_.size() && string_mark_[word_.size()] == c) {
    word_ += c;
    if (word_ == string_mark_) {
      held_.clear();
      word_.clear();
      // FunctionGemma puts marks around numbers too.
      is_typed_ = stack_.size() == 1 && (tools_.ParameterTypes(name_, top_key_) & kJsonString) == 0;
      if (!is_typed_) sink_.AddArguments("\"");
      state_ = State::kString;
    }
    return ReadResult::kMore;
  }
  if (c != ',' && c != '}' && c != ']') {
    word_ += c;
    return word_.size() > kMaxWordBytes ? ReadResult::kInvalid : ReadResult::kMore;
  }
  const std::string_view word = StripSpace(word_);
  const JsonTypes types = stack_.size() == 1 ? tools_.ParameterTypes(name_, top_key_) : kAnyJsonType;
  sink_.AddArguments(ConvertToolValue(word, types));
  state_ = State::kAfterValue;
  return FeedAfterValue(c);
}

ReadResult GemmaCallReader::FeedString(char c) {
  held_ += c;
  scratch_.clear();
  while (!held_.empty()) {
    if (held_ == string_mark_) {
      scratch_ = is_typed_ ? ConvertToolValue(word_, tools_.ParameterTypes(name_, top_key_)) : scratch_ + '"';
      held_.clear();
      state_ = State::kAfterValue;
      break;
    }
    if (string_mark_.starts_with(held_)) break;
    if (is_typed_) {
      if (word_.size() >= kMaxWordBytes) return ReadResult::kInvalid;
      word_ += held_.front();
    } else {
      AppendJsonEscaped(held_.front(), scratch_);
    }
    held_.erase(0, 1);
  }
  if (!scratch_.empty()) sink_.AddArguments(scratch_);
  return ReadResult::kMore;
}

ReadResult GemmaCallReader::FeedAfterValue(char c) {
  if (IsCallSpace(c)) return ReadResult::kMore;
  if (c == '}' || c == ']') return Close(c);
  key_.clear();
  if (c != ',') {
    // Models forget commas after strings.
    if (stack_.back() != '{') return ReadResult::kInvalid;
    state_ = State::kKey;
    return FeedKey(c);
  }
  state_ = stack_.back() == '{' ? State::kKey : State::kValue;
  return ReadResult::kMore;
}

ReadResult GemmaCallReader::Feed(char c) {
  switch (state_) {
    case State::kPrefix:
    case State::kAfterCall:
      return FeedPrefix(c);
    case State::kName:
      return FeedName(c);
    case State::kKey:
      return FeedKey(c);
    case State::kQuotedKey:
    case State::kColon:
      return FeedQuotedKey(c);
    case State::kValue:
      return FeedValue(c);
    case State::kString:
      return FeedString(c);
    case State::kWord:
      return FeedWord(c);
    case State::kAfterValue:
      return FeedAfterValue(c);
    case State::kQuoted:
      break;
  }
  scratch_.clear();
  const JsonTextScanner::Result result = scanner_.Feed(c, scratch_);
  if (result == JsonTextScanner::Result::kInvalid) return ReadResult::kInvalid;
  sink_.AddArguments(scratch_);
  if (result == JsonTextScanner::Result::kDone) state_ = State::kAfterValue;
  return ReadResult::kMore;
}

bool GemmaCallReader::Finish() { return state_ == State::kAfterCall; }

std::string_view GemmaCallReader::expected() const {
  switch (state_) {
    case State::kPrefix:
    case State::kName:
      return "call:NAME{";
    case State::kKey:
    case State::kQuotedKey:
    case State::kColon:
      return "the name of an argument";
    default:
      return "the value of an argument";
  }
}

}  // namespace vllm
