#include "engine/tool_calls/readers/named_json_reader.h"

#include "engine/tool_calls/text/json_escape.h"

namespace vllm {
namespace {

constexpr std::string_view kIndexMark = ":%INDEX%";
constexpr std::string_view kCallIdMark = "[CALL_ID]";
constexpr std::string_view kArgsMark = "[ARGS]";

}  // namespace

NamedJsonReader::NamedJsonReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools,
                                 CallSink& sink)
    : format_(format),
      tools_(tools),
      sink_(sink),
      begin_(StripSpace(format.syntax.begin)),
      after_name_(StripSpace(format.syntax.name_suffix)),
      arguments_end_(StripSpace(format.syntax.arguments_end)),
      end_(StripSpace(format.syntax.end)),
      section_end_(StripSpace(format.syntax.section_end)),
      is_mistral_(format.name.starts_with("mistral")) {
  if (after_name_.starts_with(kIndexMark)) after_name_.remove_prefix(kIndexMark.size());
  if (is_mistral_) {
    // Both formats of the family are accepted.
    after_name_ = kArgsMark;
    arguments_end_ = end_ = section_end_ = "";
  }
  const bool is_in_call = is_mistral_ || trigger == begin_;
  state_ = is_in_call ? State::kBeforeName : State::kBegin;
  matcher_.Reset({begin_, section_end_});
}

bool NamedJsonReader::SetName() {
  if (format_.syntax.name_suffix.starts_with(kIndexMark)) {
    id_ = name_;
    std::string_view name = name_;
    if (name.starts_with(format_.syntax.name_prefix)) name.remove_prefix(format_.syntax.name_prefix.size());
    const size_t colon = name.rfind(':');
    if (colon != std::string_view::npos && name.find_first_not_of("0123456789", colon + 1) == std::string_view::npos) {
      name = name.substr(0, colon);
    } else {
      id_.clear();
    }
    name_ = std::string(name);
  }
  return !name_.empty();
}

ReadResult NamedJsonReader::FeedName(char c) {
  if (IsToolName(std::string_view(&c, 1))) {
    name_ += c;
    return name_.size() > kMaxToolNameBytes ? ReadResult::kInvalid : ReadResult::kMore;
  }
  if (!SetName()) return ReadResult::kInvalid;
  if (is_mistral_) {
    matcher_.Reset({kArgsMark, kCallIdMark});
  } else {
    matcher_.Reset({after_name_});
  }
  state_ = State::kAfterName;
  return FeedAfterName(c);
}

ReadResult NamedJsonReader::FeedAfterName(char c) {
  // Some models of Mistral omit [ARGS].
  if (is_mistral_ && c == '{' && !matcher_.has_begun()) {
    state_ = State::kBeforeArguments;
    return FeedArguments(c);
  }
  switch (matcher_.Feed(c)) {
    case LiteralMatcher::Result::kMore:
      return ReadResult::kMore;
    case LiteralMatcher::Result::kFailed:
      return ReadResult::kInvalid;
    case LiteralMatcher::Result::kMatched:
      break;
  }
  state_ = is_mistral_ && matcher_.index() == 1 ? State::kCallId : State::kBeforeArguments;
  return ReadResult::kMore;
}

ReadResult NamedJsonReader::FeedArguments(char c) {
  if (state_ == State::kBeforeArguments) {
    if (IsCallSpace(c)) return ReadResult::kMore;
    if (c != '{') return ReadResult::kInvalid;
    scanner_ = JsonTextScanner();
    sink_.StartCall(name_, id_);
    state_ = State::kArguments;
  }
  scratch_.clear();
  const JsonTextScanner::Result result = scanner_.Feed(c, scratch_);
  if (result == JsonTextScanner::Result::kInvalid) return ReadResult::kInvalid;
  sink_.AddArguments(scratch_);
  if (result == JsonTextScanner::Result::kMore) return ReadResult::kMore;
  sink_.EndCall();
  if (is_mistral_) return ReadResult::kDone;
  matcher_.Reset({begin_, section_end_, end_, arguments_end_});
  state_ = State::kAfterArguments;
  return ReadResult::kMore;
}

ReadResult NamedJsonReader::FeedAfterArguments(char c) {
  switch (matcher_.Feed(c)) {
    case LiteralMatcher::Result::kMore:
      return ReadResult::kMore;
    case LiteralMatcher::Result::kFailed:
      return state_ == State::kBegin ? ReadResult::kInvalid : ReadResult::kNotPart;
    case LiteralMatcher::Result::kMatched:
      break;
  }
  if (matcher_.index() == 1) return ReadResult::kDone;
  if (matcher_.index() == 0) {
    name_.clear();
    state_ = State::kBeforeName;
    return ReadResult::kMore;
  }
  matcher_.Reset({begin_, section_end_, end_, arguments_end_});
  return ReadResult::kClosing;
}

ReadResult NamedJsonReader::Feed(char c) {
  if (objects_ != nullptr) return objects_->Feed(c);
  switch (state_) {
    case State::kBegin:
    case State::kAfterArguments:
      return FeedAfterArguments(c);
    case State::kBeforeName:
      if (IsCallSpace(c)) return ReadResult::kMore;
      if (is_mistral_ && (c == '[' || c == '{')) {
        objects_ = std::make_unique<JsonCallsReader>(format_, format_.syntax.trigger, tools_, sink_);
        return objects_->Feed(c);
      }
      state_ = State::kName;
      [[fallthrough]];
    case State::kName:
      return FeedName(c);
    case State::kAfterName:
      return FeedAfterName(c);
    case State::kCallId:
      if (c == '[' || IsCallSpace(c)) {
        matcher_.Reset({kArgsMark});
        state_ = State::kAfterName;
        return FeedAfterName(c);
      }
      return ReadResult::kMore;
    case State::kBeforeArguments:
    case State::kArguments:
      return FeedArguments(c);
  }
  return ReadResult::kInvalid;
}

bool NamedJsonReader::Finish() { return objects_ != nullptr ? objects_->Finish() : state_ == State::kAfterArguments; }

std::string_view NamedJsonReader::expected() const {
  if (objects_ != nullptr) return objects_->expected();
  switch (state_) {
    case State::kBeforeArguments:
    case State::kArguments:
      return "a JSON object as arguments";
    case State::kBegin:
      return "the beginning of a call";
    default:
      return "the name of a tool";
  }
}

}  // namespace vllm
