// PythonicCallReader: reads calls in the syntax of Python, such as [f(a=1, b='x'), g()], with or without brackets. The
// literals become JSON. See CallReader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/tool_calls/readers/call_reader.h"
#include "engine/tool_calls/text/literal_matcher.h"
#include "engine/tool_calls/text/python_literal_reader.h"

namespace vllm {

class PythonicCallReader : public CallReader {
 public:
  static constexpr size_t kMaxKeyBytes = 256;

  PythonicCallReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools, CallSink& sink);
  ReadResult Feed(char c) override;
  bool Finish() override;
  bool is_call() const override { return is_call_; }
  std::string_view expected() const override;

 private:
  enum class State : uint8_t {
    kStart,
    kBeforeName,
    kName,
    kFirstKey,
    kNextKey,
    kKey,
    kEquals,
    kValue,
    kAfterValue,
    kAfterCall,
    kEnd
  };
  ReadResult FeedName(char c);
  ReadResult FeedKey(char c);
  ReadResult FeedValue(char c);
  ReadResult EndCall();
  ReadResult FeedAfterCall(char c);
  ReadResult CloseBracket();
  void Start();

  const ToolCallFormat& format_;
  const ToolSet& tools_;
  CallSink& sink_;
  std::vector<std::string_view> ends_;
  bool is_call_ = false;  // after a marker or the name of a tool
  LiteralMatcher matcher_;
  State state_ = State::kStart;
  bool has_bracket_ = false;
  bool has_calls_ = false;
  bool is_started_ = false;
  size_t num_arguments_ = 0;
  std::string name_;
  std::string key_;
  PythonLiteralReader literal_;
  std::string scratch_;
};

}  // namespace vllm
