// ToolCallParser: finds the tool calls in the output of one sequence, as it arrives. The events do not depend on how
// the output is split into calls of Feed, except that adjacent events of one kind may be merged. Owned by the object
// that prints or collects the output; one thread.
//
// The input is the decoded output without the thought (see ReasoningSplitter), with special tokens as text: the request
// must have skip_special_tokens off. Harmony outputs may contain the thought.
//
// - Text streams at once, except white space and bytes that may begin a call. White space around calls is dropped.
// - JSON arguments are the model's own text. They stream as they grow. Control characters inside strings are escaped.
// - Arguments of other styles are converted to JSON: with the types of the tool's schema where it has them.
// - The arguments of a call that ends without error are a JSON object (RFC 8259) if the input is valid UTF-8.
// - Nothing is lost: bytes that look like a call but cannot be parsed become text, and error() says why. If the call
//   has started already, it ends with an error, and the rest becomes text. Only the beginning of a call at the end of
//   an output that was cut is not text.
//
// Time is linear in the input. At most kMaxHeldBytes are withheld, except values between tags that may be JSON. Neither
// the number of calls nor the size of their arguments is limited, as in the grammar that constrains calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tool_calls/syntax/tool_call_format.h"
#include "engine/tool_calls/syntax/tool_set.h"
#include "engine/tool_calls/tool_call_event.h"

namespace vllm {

class ToolCallParser {
 public:
  static constexpr size_t kMaxHeldBytes = 64 * 1024;

  // `format` is one of ToolCallFormats(). `request_id` and the index of a call determine its id; outputs of one request
  // should have different ones.
  ToolCallParser(const ToolCallFormat& format, std::shared_ptr<const ToolSet> tools, std::string request_id);
  ~ToolCallParser();
  ToolCallParser(ToolCallParser&&) noexcept;
  ToolCallParser& operator=(ToolCallParser&&) noexcept;

  // Appends the events of the next part of the output to `events`.
  void Feed(std::string_view text, std::vector<ToolCallEvent>& events);
  // Appends the events of the withheld text. `is_cut`: a limit or a stop string has ended the output, not the model.
  // Then the beginning of a call is not text: if the arguments have begun, the call is part of the output. Must be the
  // last call.
  void Finish(std::vector<ToolCallEvent>& events, bool is_cut = false);

  int32_t num_calls() const;
  // True between kCallStart and kCallEnd.
  bool is_inside_call() const;
  // Returns why the first part that could not be parsed was not a call, or "".
  const std::string& error() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Parses a finished output at once.
ToolCallOutput ParseToolCalls(const ToolCallFormat& format, const std::shared_ptr<const ToolSet>& tools,
                              const std::string& request_id, std::string_view text, bool is_cut = false);

}  // namespace vllm
