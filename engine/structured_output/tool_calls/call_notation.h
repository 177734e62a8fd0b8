// The notations of arguments other than JSON: between tags, in the syntax of Python, and Gemma's. The parser converts
// every text that they allow to a value that the schema allows. One thread per builder.
#pragma once

#include <memory>

#include "engine/structured_output/json_schema/argument_notation.h"
#include "engine/structured_output/tool_calls/syntax_text.h"
#include "engine/tool_calls/syntax/tool_call_format.h"
#include "engine/tool_calls/syntax/tool_set.h"

namespace vllm {

// Returns the notation of the arguments of one tool. All are borrowed. REQUIRES: the style of the format is not kJson.
std::unique_ptr<ArgumentNotation> MakeCallNotation(GrammarBuilder& builder, SyntaxText& texts,
                                                   const ToolCallFormat& format, const ToolSet& tools,
                                                   const std::string& tool);

// Returns true if the parser of the format reads calls of a tool with this name.
bool CanWriteName(const ToolCallFormat& format, std::string_view name);

}  // namespace vllm
