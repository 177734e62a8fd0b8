// MakeCallId: the ids of tool calls. Pure function; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/tool_calls/syntax/tool_call_format.h"

namespace vllm {

// Returns the id of a call: a function of the arguments alone. `name` is the name of the tool.
std::string MakeCallId(ToolCallFormat::CallIds kind, std::string_view request_id, int32_t call_index,
                       std::string_view name);

}  // namespace vllm
