#include "app/batch/tools/answer_parts.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "engine/tool_calls/tool_call_parser.h"

namespace vllm::app {

using Json = nlohmann::ordered_json;

AnswerParts SplitAnswer(const AnswerFormat& format, const std::string& request_id,
                        const std::vector<int32_t>& prompt_token_ids, const CompletionOutput& completion) {
  const bool has_calls = format.tool_calls != nullptr && format.tools.may_call();
  AnswerParts parts;
  if (format.reasoning != nullptr) {
    parts.reasoning =
        SplitReasoning(format.reasoning, prompt_token_ids, format.skip_special_tokens, completion.token_ids,
                       completion.text, /*keeps_markers=*/has_calls && IsHarmony(format.tool_calls));
  }
  parts.text = parts.reasoning ? parts.reasoning->text : completion.text;
  if (!has_calls) return parts;
  ToolCallParser parser(*format.tool_calls, format.tools.tools, request_id + "#" + std::to_string(completion.index));
  std::vector<ToolCallEvent> events;
  parser.Feed(parts.text, events);
  parser.Finish(events, WasCut(completion));
  ToolCallOutput output;
  for (const ToolCallEvent& event : events) {
    output.Add({event});
    if (event.kind != ToolCallEvent::Kind::kCallEnd) continue;
    ToolCall call = std::move(output.calls.back());
    if (!call.error.empty() && !call.is_cut) {
      output.text += call.name + " " + call.arguments;
    } else if (format.tools.parallel_calls || parts.calls.empty()) {
      parts.calls.push_back(std::move(call));
    }
  }
  parts.text = std::move(output.text);
  // The channel of a thought may be spelled with other tokens than the splitter expects.
  if (parts.reasoning) parts.reasoning->reasoning += output.reasoning;
  if (parts.reasoning) parts.reasoning->text = parts.text;
  return parts;
}

Json ToolCallsJson(const std::vector<ToolCall>& calls) {
  Json list = Json::array();
  for (const ToolCall& call : calls) {
    list.push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return list;
}

}  // namespace vllm::app
