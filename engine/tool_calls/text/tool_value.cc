#include "engine/tool_calls/text/tool_value.h"

#include "engine/tool_calls/text/json_escape.h"
#include "engine/tool_calls/text/json_text_scanner.h"
#include "engine/tool_calls/text/literal_matcher.h"
#include "engine/tool_calls/text/python_literal_reader.h"

namespace vllm {

std::string ConvertToolValue(std::string_view text, JsonTypes types) {
  if (types == kJsonString) return JsonStringText(text);
  if ((types & kJsonNumber) != 0) types |= kJsonInteger;
  const std::string_view stripped = StripSpace(text);
  std::string json(stripped);
  JsonTypes type = JsonTypeOf(json);
  // Templates write values that are no strings with Python's str(): True, None, ['a'].
  if (type == 0) {
    json = PythonLiteralToJson(stripped);
    type = JsonTypeOf(json);
  }
  if ((type & types) != 0) return json;
  return type == 0 || (types & kJsonString) != 0 ? JsonStringText(text) : json;
}

}  // namespace vllm
