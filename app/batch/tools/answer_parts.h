// AnswerParts: a finished output, split into thought, text and tool calls. Pure functions; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/batch/tools/tool_request.h"
#include "engine/reasoning/reasoning_splitter.h"
#include "engine/request/request_output.h"
#include "engine/tool_calls/syntax/tool_call_format.h"
#include "engine/tool_calls/tool_call_event.h"

namespace vllm::app {

struct AnswerParts {
  std::optional<ReasoningParts> reasoning;  // nullopt: the output was not split; its text is that of the answer
  std::string text;                         // of the answer, without calls
  std::vector<ToolCall> calls;              // the last one may be cut
};

// How the outputs of a request are split.
struct AnswerFormat {
  std::shared_ptr<const ReasoningFormat> reasoning = nullptr;  // null: thoughts are not split
  const ToolCallFormat* tool_calls = nullptr;                  // null: calls are part of the text
  ToolRequest tools = {};
  bool skip_special_tokens = true;
};

// `request_id` determines the ids of the calls. The name and the arguments of a broken call are part of the text.
AnswerParts SplitAnswer(const AnswerFormat& format, const std::string& request_id,
                        const std::vector<int32_t>& prompt_token_ids, const CompletionOutput& completion);

// Returns [{"id","type":"function","function":{"name","arguments"}}], in which arguments is a string.
nlohmann::ordered_json ToolCallsJson(const std::vector<ToolCall>& calls);

}  // namespace vllm::app
