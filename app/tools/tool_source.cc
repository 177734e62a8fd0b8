#include "app/tools/tool_source.h"

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {

ToolResult FailedResult(const std::string& why) {
  ToolResult result;
  result.text = "error: " + tokenizer::ReplaceInvalidUtf8(why);
  result.failed = true;
  return result;
}

std::string ResultText(std::string_view text, int64_t num_omitted_bytes) {
  std::string result;
  if (text.size() > kMaxResultBytes) {
    size_t end = kMaxResultBytes;
    while (end > 0 && tokenizer::IsUtf8Continuation(text[end])) --end;
    num_omitted_bytes += static_cast<int64_t>(text.size() - end);
    text = text.substr(0, end);
  } else if (num_omitted_bytes > 0) {
    const size_t tail = tokenizer::IncompleteUtf8Tail(text);
    num_omitted_bytes += static_cast<int64_t>(tail);
    text.remove_suffix(tail);
  }
  tokenizer::AppendValidUtf8(text, result);
  if (num_omitted_bytes > 0) {
    if (!result.empty() && result.back() != '\n') result += '\n';
    result += "[" + std::to_string(num_omitted_bytes) + " more bytes were omitted]";
  }
  return result;
}

}  // namespace vllm::app
