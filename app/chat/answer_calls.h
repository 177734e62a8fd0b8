// AnswerCalls: separates the tool calls in one streamed answer from its text. Owned by the function that waits for the
// answer; main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tool_calls/tool_call_parser.h"

namespace vllm::app {

class AnswerCalls {
 public:
  // `format` may be null: all text is the answer.
  AnswerCalls(const ToolCallFormat* format, std::shared_ptr<const ToolSet> tools, std::string request_id)
      : format_(format), tools_(std::move(tools)), request_id_(std::move(request_id)) {
    Restart("");
  }

  // Begins again after `prior_text`, and returns its visible part.
  std::string Restart(std::string_view prior_text);
  // Takes the next part of the answer, without its thought. Returns the text that can be shown now. `is_cut`: a final
  // part that the model has not ended.
  std::string Take(std::string_view text, bool is_final, bool is_cut);

  // Returns the calls so far; the last one may be incomplete until the end of the answer.
  const std::vector<ToolCall>& calls() const { return output_.calls; }
  // Returns why something that looked like a call is part of the text, or "".
  const std::string& error() const { return output_.error; }
  bool is_on() const { return format_ != nullptr; }

 private:
  const ToolCallFormat* format_;
  std::shared_ptr<const ToolSet> tools_;
  std::string request_id_;
  std::optional<ToolCallParser> parser_;
  ToolCallOutput output_;
};

// Convert calls to the text of StoredMessage::tool_calls and back. Arguments that are a JSON object become one, as chat
// templates expect; others stay a string. CallsIn returns an empty list for any other text.
std::string CallsJson(const std::vector<ToolCall>& calls);
std::vector<ToolCall> CallsIn(const std::string& tool_calls_json);

}  // namespace vllm::app
