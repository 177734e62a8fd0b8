#include "app/chat/tool_prompt.h"

#include <utility>

#include "app/chat/answer_calls.h"

namespace vllm::app {

std::string ToolPrompt(const std::string& tools_json) {
  // The text of Hermes 2 Pro and Qwen 2.5.
  return "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
         "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n" +
         tools_json +
         "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
         "<tool_call></tool_call> XML tags:\n<tool_call>\n"
         "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>";
}

std::vector<tokenizer::ChatMessage> WithToolPrompt(std::vector<tokenizer::ChatMessage> messages,
                                                   const std::string& tool_prompt) {
  std::vector<tokenizer::ChatMessage> shown;
  const bool is_described = !tool_prompt.empty();
  if (is_described && (messages.empty() || messages[0].role != "system")) shown.push_back({"system", tool_prompt});
  bool follows_result = false;
  for (tokenizer::ChatMessage& message : messages) {
    if (is_described && shown.empty()) message.content += "\n\n" + tool_prompt;
    for (const ToolCall& call : CallsIn(std::exchange(message.tool_calls_json, ""))) {
      if (!message.content.empty()) message.content += "\n";
      message.content +=
          "<tool_call>\n{\"name\": \"" + call.name + "\", \"arguments\": " + call.arguments + "}\n</tool_call>";
    }
    if (message.role == "tool") {
      const std::string result = "<tool_response>\n" + message.content + "\n</tool_response>";
      // Most templates expect that user and assistant alternate.
      if (!shown.empty() && shown.back().role == "user") {
        shown.back().content += "\n" + result;
        continue;
      }
      message = {"user", result};
      follows_result = true;
    } else if (message.role == "user" && follows_result) {
      shown.back().content += "\n" + message.content;
      continue;
    } else {
      follows_result = false;
    }
    shown.push_back(std::move(message));
  }
  return shown;
}

}  // namespace vllm::app
