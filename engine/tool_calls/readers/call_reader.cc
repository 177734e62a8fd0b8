#include "engine/tool_calls/readers/call_reader.h"

#include "engine/tool_calls/readers/gemma_call_reader.h"
#include "engine/tool_calls/readers/harmony_call_reader.h"
#include "engine/tool_calls/readers/json_calls_reader.h"
#include "engine/tool_calls/readers/named_json_reader.h"
#include "engine/tool_calls/readers/pythonic_call_reader.h"
#include "engine/tool_calls/readers/tagged_call_reader.h"

namespace vllm {

ReadResult FeedSectionEnd(LiteralMatcher& matcher, char c) {
  switch (matcher.Feed(c)) {
    case LiteralMatcher::Result::kMore:
      return ReadResult::kMore;
    case LiteralMatcher::Result::kMatched:
      return ReadResult::kDone;
    case LiteralMatcher::Result::kFailed:
      break;
  }
  return ReadResult::kNotPart;
}

std::unique_ptr<CallReader> MakeCallReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools,
                                           CallSink& sink) {
  using Reader = ToolCallFormat::Reader;
  switch (format.reader) {
    case Reader::kJsonCalls:
      return std::make_unique<JsonCallsReader>(format, trigger, tools, sink);
    case Reader::kNamedJson:
      return std::make_unique<NamedJsonReader>(format, trigger, tools, sink);
    case Reader::kTagged:
      return std::make_unique<TaggedCallReader>(format, trigger, tools, sink);
    case Reader::kPythonic:
      return std::make_unique<PythonicCallReader>(format, trigger, tools, sink);
    case Reader::kGemma:
      return std::make_unique<GemmaCallReader>(format, tools, sink);
    case Reader::kHarmony:
      return std::make_unique<HarmonyCallReader>(trigger, sink);
  }
  return nullptr;
}

}  // namespace vllm
