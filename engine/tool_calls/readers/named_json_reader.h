// NamedJsonReader: reads calls that are a name, a text, and a JSON object of arguments, such as NAME[ARGS]{...}.
// Mistral's older models write an array of JSON objects instead. See CallReader.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/tool_calls/readers/json_calls_reader.h"

namespace vllm {

class NamedJsonReader : public CallReader {
 public:
  NamedJsonReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools, CallSink& sink);
  ReadResult Feed(char c) override;
  bool Finish() override;
  std::string_view expected() const override;

 private:
  enum class State : uint8_t {
    kBegin,  // before CallSyntax::begin
    kBeforeName,
    kName,
    kAfterName,  // before the text after the name
    kCallId,     // of Mistral; it is ignored
    kBeforeArguments,
    kArguments,
    kAfterArguments,  // before closing texts or the next call
  };
  ReadResult FeedName(char c);
  ReadResult FeedAfterName(char c);
  ReadResult FeedArguments(char c);
  ReadResult FeedAfterArguments(char c);
  bool SetName();

  const ToolCallFormat& format_;
  const ToolSet& tools_;
  CallSink& sink_;
  std::string_view begin_, after_name_, arguments_end_, end_, section_end_;
  bool is_mistral_;
  State state_;
  LiteralMatcher matcher_;
  JsonTextScanner scanner_;
  std::string name_;
  std::string id_;  // of Kimi
  std::string scratch_;
  std::unique_ptr<JsonCallsReader> objects_;  // of Mistral's older models
};

}  // namespace vllm
