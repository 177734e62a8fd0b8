#include "engine/tool_calls/readers/tagged_call_reader.h"

#include <utility>

#include "engine/tool_calls/text/json_escape.h"
#include "engine/tool_calls/text/tool_value.h"

namespace vllm {
namespace {

constexpr std::string_view kTypeMark = "%TYPE%";

}  // namespace

TaggedCallReader::TaggedCallReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools,
                                   CallSink& sink)
    : tools_(tools),
      sink_(sink),
      name_prefix_(StripSpace(format.syntax.name_prefix)),
      after_name_(StripSpace(format.syntax.name_suffix)),
      parameter_begin_(StripSpace(format.syntax.parameter_begin)),
      value_begin_(StripSpace(format.syntax.value_begin)),
      arguments_end_(StripSpace(format.syntax.arguments_end)),
      end_(StripSpace(format.syntax.end)),
      section_end_(StripSpace(format.syntax.section_end)),
      parameter_end_(StripSpace(format.syntax.parameter_end)),
      strips_lines_(format.syntax.parameter_end.starts_with('\n')),
      has_section_(!format.syntax.section_begin.empty()) {
  const std::string_view key_end = StripSpace(format.syntax.key_end);
  const size_t mark = key_end.find(kTypeMark);
  if (mark != std::string_view::npos) {
    for (const char* type : {"true", "false"}) {
      key_end_texts_.push_back(std::string(key_end.substr(0, mark)) + type +
                               std::string(key_end.substr(mark + kTypeMark.size())));
    }
    key_end_texts_.emplace_back(key_end.substr(mark + kTypeMark.size()));  // without the attribute
  } else {
    key_end_texts_.emplace_back(key_end);
  }
  if (name_prefix_.empty() || trigger == name_prefix_) {
    state_ = State::kName;
  } else {
    Expect(State::kOpen, {name_prefix_});
  }
}

void TaggedCallReader::Expect(State state, std::vector<std::string_view> texts) {
  state_ = state;
  matcher_.Reset(std::move(texts));
}

void TaggedCallReader::ExpectNext() { Expect(State::kNext, {parameter_begin_, arguments_end_, end_, section_end_}); }

ReadResult TaggedCallReader::EndCall(bool is_section_end) {
  sink_.AddArguments(num_arguments_ == 0 ? "{}" : "}");
  sink_.EndCall();
  if (is_section_end) return ReadResult::kDone;
  Expect(State::kAfterCall, has_section_ ? std::vector{section_end_, name_prefix_} : std::vector{end_});
  return ReadResult::kMore;
}

ReadResult TaggedCallReader::FeedMatcher(char c) {
  switch (matcher_.Feed(c)) {
    case LiteralMatcher::Result::kMore:
      return ReadResult::kMore;
    case LiteralMatcher::Result::kFailed:
      return state_ == State::kAfterCall ? ReadResult::kNotPart : ReadResult::kInvalid;
    case LiteralMatcher::Result::kMatched:
      break;
  }
  const size_t index = matcher_.index();
  switch (state_) {
    case State::kOpen:
      name_.clear();
      state_ = State::kName;
      return ReadResult::kMore;
    case State::kAfterName:
      sink_.StartCall(name_, "");
      num_arguments_ = 0;
      ExpectNext();
      return ReadResult::kMore;
    case State::kNext:
      if (index != 0) return EndCall(index >= 2);
      key_.clear();
      state_ = State::kKey;
      return ReadResult::kMore;
    case State::kBeforeValue:
      BeginValue();
      return ReadResult::kMore;
    default:
      break;
  }
  // kAfterCall
  if (index == 0) return ReadResult::kDone;
  name_.clear();
  state_ = State::kName;
  return ReadResult::kMore;
}

ReadResult TaggedCallReader::FeedName(char c) {
  if (name_.empty() && IsCallSpace(c)) return ReadResult::kMore;
  if (IsToolName(std::string_view(&c, 1))) {
    name_ += c;
    return name_.size() > kMaxToolNameBytes ? ReadResult::kInvalid : ReadResult::kMore;
  }
  if (name_.empty()) return ReadResult::kInvalid;
  if (!after_name_.empty()) {
    Expect(State::kAfterName, {after_name_});
    return FeedMatcher(c);
  }
  if (!IsCallSpace(c) && c != '<') return ReadResult::kInvalid;
  sink_.StartCall(name_, "");
  num_arguments_ = 0;
  ExpectNext();
  return FeedMatcher(c);
}

ReadResult TaggedCallReader::FeedKey(char c) {
  key_ += c;
  for (size_t i = 0; i < key_end_texts_.size(); ++i) {
    if (!key_.ends_with(key_end_texts_[i])) continue;
    key_ = std::string(StripSpace(std::string_view(key_).substr(0, key_.size() - key_end_texts_[i].size())));
    if (key_.empty()) return ReadResult::kInvalid;
    types_ = tools_.ParameterTypes(name_, key_);
    if (key_end_texts_.size() > 1 && i == 0) types_ = kJsonString;
    if (value_begin_.empty()) {
      BeginValue();
    } else {
      Expect(State::kBeforeValue, {value_begin_});
    }
    return ReadResult::kMore;
  }
  return key_.size() > kMaxKeyBytes ? ReadResult::kInvalid : ReadResult::kMore;
}

void TaggedCallReader::BeginValue() {
  sink_.AddArguments((num_arguments_++ == 0 ? "{" : ", ") + JsonStringText(key_) + ": ");
  state_ = State::kValue;
  is_streaming_ = false;
  at_value_start_ = true;
  value_.clear();
  held_.clear();
}

void TaggedCallReader::StreamValue() {
  std::string json;
  if (!is_streaming_) json = "\"";
  is_streaming_ = true;
  AppendJsonEscaped(value_, json);
  value_.clear();
  sink_.AddArguments(json);
}

void TaggedCallReader::AddValueByte(char c) {
  value_ += c;
  const bool may_be_null = (types_ & kJsonNull) != 0 && std::string_view("null").starts_with(value_);
  const bool is_string = (types_ & ~kJsonNull) == kJsonString;
  if (is_streaming_ || (is_string && !may_be_null)) StreamValue();
}

void TaggedCallReader::EndValue() {
  if (is_streaming_) {
    StreamValue();
    sink_.AddArguments("\"");
  } else {
    sink_.AddArguments(ConvertToolValue(value_, types_));
  }
  value_.clear();
  ExpectNext();
}

ReadResult TaggedCallReader::FeedValue(char c) {
  if (strips_lines_ && at_value_start_ && c == '\n') {
    at_value_start_ = false;
    // An empty value may have only one line break, which is then also that of the end.
    return ReadResult::kMore;
  }
  at_value_start_ = false;
  held_ += c;
  while (!held_.empty()) {
    const std::string_view held = held_;
    const std::string_view tag = strips_lines_ && held.front() == '\n' ? held.substr(1) : held;
    if (tag == parameter_end_) {
      EndValue();
      return ReadResult::kMore;
    }
    if (parameter_end_.starts_with(tag)) return ReadResult::kMore;
    AddValueByte(held_.front());
    held_.erase(0, 1);
  }
  return ReadResult::kMore;
}

ReadResult TaggedCallReader::Feed(char c) {
  switch (state_) {
    case State::kName:
      return FeedName(c);
    case State::kKey:
      return FeedKey(c);
    case State::kValue:
      return FeedValue(c);
    default:
      return FeedMatcher(c);
  }
}

bool TaggedCallReader::Finish() { return state_ == State::kAfterCall; }

std::string_view TaggedCallReader::expected() const {
  switch (state_) {
    case State::kNext:
      return "a parameter or the end of the call";
    case State::kKey:
      return "the name of a parameter";
    case State::kBeforeValue:
    case State::kValue:
      return "the value of a parameter";
    default:
      return "the name of a tool";
  }
}

}  // namespace vllm
