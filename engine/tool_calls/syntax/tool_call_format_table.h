// The table of ToolCallFormats: JSON formats and tagged formats are in a file each. Immutable; any thread.
#pragma once

#include "engine/tool_calls/syntax/tool_call_format.h"

namespace vllm {

// Sources of all entries: the chat templates of the models, vllm/tool_parsers and xgrammar's structural tags.
std::span<const ToolCallFormat> JsonToolCallFormats();
std::span<const ToolCallFormat> TaggedToolCallFormats();

}  // namespace vllm
