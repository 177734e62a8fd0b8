// JsonCallsReader: reads calls that are JSON objects with a name and arguments, alone or in an array. The members may
// come in any order: {"name": "f", "arguments": {...}}, with "tool_name" or "function" for the name, and "parameters"
// for the arguments, or both inside a member "function". Arguments may be JSON inside a string. See CallReader.
#pragma once

#include <string>
#include <vector>

#include "engine/tool_calls/readers/call_reader.h"
#include "engine/tool_calls/text/json_string_decoder.h"
#include "engine/tool_calls/text/json_text_scanner.h"
#include "engine/tool_calls/text/literal_matcher.h"

namespace vllm {

class JsonCallsReader : public CallReader {
 public:
  JsonCallsReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools, CallSink& sink);
  ReadResult Feed(char c) override;
  bool Finish() override;
  bool is_call() const override { return is_marked_ || has_calls_ || has_name_; }
  std::string_view expected() const override;

 private:
  enum class State : uint8_t {
    kPrefix,       // the rest of CallSyntax::begin after the trigger
    kStart,        // before the first object or array
    kElement,      // in the array, before an object
    kNextElement,  // in the array, after an object
    kNextObject,   // after an object that is not in an array
    kEnd,          // before the closing text
    // Inside an object:
    kFirstKey,
    kNextKey,
    kKey,
    kColon,
    kValue,
    kName,
    kArguments,
    kQuotedArguments,
    kOther,
    kAfterValue,
  };
  ReadResult FeedBetween(char c);
  ReadResult FeedObject(char c);
  ReadResult BeginObject();
  ReadResult BeginValue(char c);
  ReadResult EndObject();
  ReadResult EndName();
  ReadResult FeedArguments(char c);
  ReadResult FeedQuotedArguments(char c);
  bool IsCallKey() const;
  void Emit();

  const ToolCallFormat& format_;
  const ToolSet& tools_;
  CallSink& sink_;
  std::vector<std::string_view> ends_;
  LiteralMatcher matcher_;
  State state_ = State::kStart;
  bool is_marked_ = false;  // the trigger is a marker
  bool is_array_ = false;
  bool has_calls_ = false;

  // Of the current object
  std::string key_;
  std::string name_;
  std::string arguments_;  // that have not been emitted
  bool has_name_ = false;
  bool has_arguments_ = false;
  bool is_started_ = false;
  bool is_nested_ = false;
  JsonStringDecoder string_;
  JsonTextScanner scanner_;
  std::string scratch_;
};

}  // namespace vllm
