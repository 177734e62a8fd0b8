// HarmonyCallReader: reads one message header of gpt-oss, and the arguments if the message is a call:
//   <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
//   <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>
// Headers of other messages are dropped. The text after them is that of a thought if the channel is "analysis". The
// texts that end messages are read as empty sections. See CallReader.
#pragma once

#include <string>
#include <string_view>

#include "engine/tool_calls/readers/call_reader.h"
#include "engine/tool_calls/text/json_text_scanner.h"
#include "engine/tool_calls/text/literal_matcher.h"

namespace vllm {

class HarmonyCallReader : public CallReader {
 public:
  static constexpr size_t kMaxHeaderBytes = 512;
  // An output may begin with the recipient, because the prompt ends with the role.
  static constexpr std::string_view kRecipient = "to=functions.";

  // True if a section consists of the trigger alone.
  static bool IsWhole(std::string_view trigger);

  HarmonyCallReader(std::string_view trigger, CallSink& sink);
  ReadResult Feed(char c) override;
  bool Finish() override;
  std::string_view expected() const override;

 private:
  enum class State : uint8_t { kHeader, kBeforeArguments, kArguments, kAfterArguments };
  ReadResult EndHeader();

  CallSink& sink_;
  State state_ = State::kHeader;
  std::string header_;
  std::string name_;
  LiteralMatcher matcher_;
  JsonTextScanner scanner_;
  std::string scratch_;
};

}  // namespace vllm
