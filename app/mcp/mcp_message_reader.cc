#include "app/mcp/mcp_message_reader.h"

#include <utility>

namespace vllm::app {

void McpMessageReader::TakeLine(std::string_view line, std::vector<McpMessage>& messages) {
  McpMessage message = ParseMcpMessage(line);
  if (message.kind != McpMessage::Kind::kNoise) {
    messages.push_back(std::move(message));
  } else if (!line.empty()) {
    ++num_ignored_lines_;
  }
}

void McpMessageReader::Feed(std::string_view bytes, std::vector<McpMessage>& messages) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const bool is_complete = end != std::string_view::npos;
    bytes.remove_prefix(is_complete ? end + 1 : bytes.size());
    if (!is_skipping_ && line_.size() + part.size() > kMaxLineBytes) {
      McpMessage broken;
      broken.kind = McpMessage::Kind::kBroken;
      broken.text = "a line is too long (limit " + std::to_string(kMaxLineBytes >> 20) + " MiB)";
      messages.push_back(std::move(broken));
      line_ = std::string();
      is_skipping_ = true;
    }
    if (is_skipping_) {
      is_skipping_ = !is_complete;
    } else if (!is_complete) {
      line_ += part;
    } else if (line_.empty()) {
      TakeLine(part, messages);
    } else {
      line_ += part;
      TakeLine(line_, messages);
      line_.clear();
    }
  }
}

}  // namespace vllm::app
