// ConvertToolValue: converts the raw text of an argument to JSON. Pure function; any thread.
#pragma once

#include <string>
#include <string_view>

#include "engine/tool_calls/syntax/tool_set.h"

namespace vllm {

// Returns `text` as JSON. If it is a JSON value or a Python literal of one of the types, returns that value. Otherwise
// returns a string if `types` has strings or the text is neither JSON nor a literal.
std::string ConvertToolValue(std::string_view text, JsonTypes types);

}  // namespace vllm
