// McpMessageReader: cuts the bytes that an MCP server writes into lines and parses them. Holds at most one line of at
// most kMaxLineBytes. Owned by McpClient; main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/mcp/mcp_message.h"

namespace vllm::app {

class McpMessageReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{8} << 20;

  // Appends the messages of all lines that `bytes` completes. A line that is no message is only counted. A line that is
  // too long is skipped, and one kBroken message reports it.
  void Feed(std::string_view bytes, std::vector<McpMessage>& messages);

  int64_t num_ignored_lines() const { return num_ignored_lines_; }

 private:
  void TakeLine(std::string_view line, std::vector<McpMessage>& messages);

  std::string line_;          // the beginning of an incomplete line
  bool is_skipping_ = false;  // the rest of a line that is too long
  int64_t num_ignored_lines_ = 0;
};

}  // namespace vllm::app
