// CallReader: reads the calls of one section, in the syntax of one format, byte by byte. CallSink: receives them. Owned
// by a ToolCallParser; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/tool_calls/syntax/tool_call_format.h"
#include "engine/tool_calls/syntax/tool_set.h"
#include "engine/tool_calls/text/literal_matcher.h"

namespace vllm {

class CallSink {
 public:
  virtual ~CallSink() = default;
  // A call begins. `id` is the model's own id, or empty. REQUIRES: the previous call has ended.
  virtual void StartCall(std::string_view name, std::string_view id) = 0;
  virtual void AddArguments(std::string_view json) = 0;
  virtual void EndCall() = 0;
  // The text after the section is that of a thought, or of the answer. Harmony only.
  virtual void SetReasoning(bool is_reasoning) = 0;
};

enum class ReadResult : uint8_t {
  kMore,
  kClosing,  // like kMore, but the bytes so far are part of the section
  kDone,     // the section ends with this byte
  kNotPart,  // the bytes since the last call or kClosing, including this one, are not part of the section
  kInvalid,  // this byte cannot follow
};

class CallReader {
 public:
  virtual ~CallReader() = default;
  // Reads the next byte after the trigger. Must not be called after kDone, kNotPart or kInvalid.
  virtual ReadResult Feed(char c) = 0;
  // The output ends here. Returns true if only closing texts are missing, so that nothing is left to be text.
  virtual bool Finish() = 0;
  // Returns true if what was read can only be calls. Asked only where the trigger may also be text.
  virtual bool is_call() const { return true; }
  // Returns what was expected, after kInvalid. For error messages.
  virtual std::string_view expected() const = 0;
};

// Reads the next byte of a text that ends a section, with a matcher of such texts.
ReadResult FeedSectionEnd(LiteralMatcher& matcher, char c);

// Returns a reader that begins after `trigger`, one of the triggers of the format. Borrows its arguments.
std::unique_ptr<CallReader> MakeCallReader(const ToolCallFormat& format, std::string_view trigger, const ToolSet& tools,
                                           CallSink& sink);

}  // namespace vllm
