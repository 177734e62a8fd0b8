// TaggedCallReader: reads calls whose name and arguments are between tags, such as
// <function=NAME><parameter=KEY>VALUE</parameter></function>. See CallSyntax and CallReader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/tool_calls/readers/call_reader.h"
#include "engine/tool_calls/text/literal_matcher.h"

namespace vllm {

class TaggedCallReader : public CallReader {
 public:
  static constexpr size_t kMaxKeyBytes = 256;

  TaggedCallReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools, CallSink& sink);
  ReadResult Feed(char c) override;
  bool Finish() override;
  std::string_view expected() const override;

 private:
  enum class State : uint8_t {
    kOpen,  // before a call
    kName,
    kAfterName,  // before the text after the name
    kNext,       // before a parameter or the end of the call
    kKey,
    kBeforeValue,  // before CallSyntax::value_begin
    kValue,
    kAfterCall,
  };
  void Expect(State state, std::vector<std::string_view> texts);
  void ExpectNext();
  ReadResult FeedMatcher(char c);
  ReadResult FeedName(char c);
  ReadResult FeedKey(char c);
  ReadResult FeedValue(char c);
  void BeginValue();
  void AddValueByte(char c);
  void StreamValue();
  void EndValue();
  ReadResult EndCall(bool is_section_end);

  const ToolSet& tools_;
  CallSink& sink_;
  std::string_view name_prefix_, after_name_, parameter_begin_, value_begin_, arguments_end_, end_, section_end_;
  std::vector<std::string> key_end_texts_;  // the longest first
  std::string_view parameter_end_;
  bool strips_lines_;  // a line break around values belongs to the tags
  bool has_section_;

  State state_ = State::kOpen;
  LiteralMatcher matcher_;
  std::string name_;
  std::string key_;
  size_t num_arguments_ = 0;
  JsonTypes types_ = kAnyJsonType;
  bool is_streaming_ = false;  // the value is a string, of which a part has been emitted
  bool at_value_start_ = false;
  std::string value_;  // that has not been emitted
  std::string held_;   // a beginning of the end of the value
};

}  // namespace vllm
