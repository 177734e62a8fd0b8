// GemmaCallReader: reads calls in the notation of Gemma's tool models: call:NAME{KEY:VALUE,...}, where a mark stands
// before and after strings. Values may be lists and objects. See CallReader.
#pragma once

#include <string>
#include <string_view>

#include "engine/tool_calls/readers/call_reader.h"
#include "engine/tool_calls/text/json_string_decoder.h"
#include "engine/tool_calls/text/json_text_scanner.h"
#include "engine/tool_calls/text/literal_matcher.h"

namespace vllm {

class GemmaCallReader : public CallReader {
 public:
  static constexpr size_t kMaxKeyBytes = 256;  // without quotation marks
  static constexpr size_t kMaxWordBytes = 64 * 1024;

  GemmaCallReader(const ToolCallFormat& format, const ToolSet& tools, CallSink& sink);
  ReadResult Feed(char c) override;
  bool Finish() override;
  std::string_view expected() const override;

 private:
  enum class State : uint8_t {
    kPrefix,
    kName,
    kKey,
    kQuotedKey,
    kColon,
    kValue,
    kString,
    kQuoted,
    kWord,
    kAfterValue,
    kAfterCall
  };
  ReadResult FeedPrefix(char c);
  ReadResult FeedName(char c);
  ReadResult FeedKey(char c);
  ReadResult FeedQuotedKey(char c);
  ReadResult EndKey(std::string_view key);
  ReadResult FeedValue(char c);
  ReadResult FeedString(char c);
  ReadResult FeedWord(char c);
  ReadResult FeedAfterValue(char c);
  ReadResult Open(char c);
  ReadResult Close(char c);
  void BeginElement();

  const ToolSet& tools_;
  CallSink& sink_;
  std::string_view prefix_, end_, string_mark_;
  LiteralMatcher matcher_;
  State state_ = State::kPrefix;
  std::string stack_;  // '{' or '[' of each open container
  bool is_first_ = true;
  bool is_typed_ = false;  // the string is the text of a value of another type
  std::string name_;
  std::string key_;           // of the innermost object
  std::string top_key_;       // of the arguments
  std::string word_;          // a value without marks
  std::string held_;          // a beginning of string_mark_
  JsonStringDecoder string_;  // of a key
  JsonTextScanner scanner_;
  std::string scratch_;
};

}  // namespace vllm
