#include "engine/tool_calls/readers/harmony_call_reader.h"

#include "engine/tool_calls/text/json_escape.h"

namespace vllm {
namespace {

constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kChannel = "<|channel|>";

// Returns the word of a header after `label`, or "".
std::string WordAfter(const std::string& header, std::string_view label) {
  const size_t at = header.find(label);
  if (at == std::string::npos) return "";
  const size_t begin = at + label.size();
  return header.substr(begin, std::min(header.find_first_of(" \t\r\n<", begin), header.size()) - begin);
}

}  // namespace

bool HarmonyCallReader::IsWhole(std::string_view trigger) {
  return trigger == kMessage || trigger == "<|end|>" || trigger == "<|call|>" || trigger == "<|return|>";
}

HarmonyCallReader::HarmonyCallReader(std::string_view trigger, CallSink& sink) : sink_(sink), header_(trigger) {}

ReadResult HarmonyCallReader::EndHeader() {
  header_.resize(header_.size() - kMessage.size());
  std::string recipient = WordAfter(header_, "to=");
  if (recipient.empty()) {
    sink_.SetReasoning(WordAfter(header_, kChannel) == "analysis");
    return ReadResult::kDone;
  }
  constexpr std::string_view kNamespace = "functions.";
  if (recipient.starts_with(kNamespace)) recipient.erase(0, kNamespace.size());
  if (!IsToolName(recipient)) return ReadResult::kInvalid;
  name_ = recipient;
  state_ = State::kBeforeArguments;
  return ReadResult::kMore;
}

ReadResult HarmonyCallReader::Feed(char c) {
  switch (state_) {
    case State::kHeader:
      header_ += c;
      if (c == '>' && header_.ends_with(kMessage)) return EndHeader();
      return header_.size() > kMaxHeaderBytes ? ReadResult::kInvalid : ReadResult::kMore;
    case State::kBeforeArguments:
      if (IsCallSpace(c)) return ReadResult::kMore;
      if (c != '{') return ReadResult::kInvalid;
      sink_.SetReasoning(false);
      sink_.StartCall(name_, "");
      state_ = State::kArguments;
      [[fallthrough]];
    case State::kArguments: {
      scratch_.clear();
      const JsonTextScanner::Result result = scanner_.Feed(c, scratch_);
      if (result == JsonTextScanner::Result::kInvalid) return ReadResult::kInvalid;
      sink_.AddArguments(scratch_);
      if (result == JsonTextScanner::Result::kMore) return ReadResult::kMore;
      sink_.EndCall();
      state_ = State::kAfterArguments;
      matcher_.Reset({"<|call|>", "<|end|>", "<|return|>"});
      return ReadResult::kMore;
    }
    case State::kAfterArguments:
      break;
  }
  return FeedSectionEnd(matcher_, c);
}

// A header without a message is not text.
bool HarmonyCallReader::Finish() { return state_ == State::kAfterArguments || state_ == State::kHeader; }

std::string_view HarmonyCallReader::expected() const {
  return state_ == State::kHeader ? "<|message|> after the header of a message" : "a JSON object as arguments";
}

}  // namespace vllm
