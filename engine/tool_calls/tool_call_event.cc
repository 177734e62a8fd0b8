#include "engine/tool_calls/tool_call_event.h"

namespace vllm {

void ToolCallOutput::Add(const std::vector<ToolCallEvent>& events) {
  for (const ToolCallEvent& event : events) {
    switch (event.kind) {
      case ToolCallEvent::Kind::kText:
        text += event.text;
        break;
      case ToolCallEvent::Kind::kReasoning:
        reasoning += event.text;
        break;
      case ToolCallEvent::Kind::kCallStart:
        calls.push_back({event.id, event.name});
        break;
      case ToolCallEvent::Kind::kArguments:
        calls.back().arguments += event.text;
        break;
      case ToolCallEvent::Kind::kCallEnd:
        calls.back().error = event.error;
        calls.back().is_cut = event.is_cut;
        break;
    }
  }
}

}  // namespace vllm
