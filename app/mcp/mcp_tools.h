// McpTools: the tools of one MCP server. Owned by ToolBox; main thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/mcp/mcp_client.h"
#include "app/tools/tool_source.h"

namespace vllm::app {

class McpTools : public ToolSource {
 public:
  explicit McpTools(McpServerSpec spec) : client_(std::move(spec)) {}

  // Starts the server and asks for its tools. Returns why the server cannot be used, or "". A server that cannot be
  // used has no tools. Throws what the hooks throw.
  std::string Start(std::span<const PollHook> hooks);

  const std::vector<ToolDefinition>& definitions() const override { return definitions_; }
  ToolResult Run(size_t index, const std::string& arguments, std::span<const PollHook> hooks) override;
  // After the server has reported that its tools have changed, asks for them. If that fails, keeps the old ones.
  bool Refresh(std::span<const PollHook> hooks) override;
  std::string OriginOf(size_t index) const override;
  std::string prefix() const override { return client_.spec().name; }

  const McpClient& client() const { return client_; }
  // Returns why tools were left out, for warnings, once.
  std::vector<std::string> TakeWarnings() { return std::exchange(warnings_, {}); }

 private:
  std::string List(std::span<const PollHook> hooks, std::vector<ToolDefinition>& definitions);

  McpClient client_;
  std::vector<ToolDefinition> definitions_;
  std::vector<std::string> warnings_;
};

// Reads one page of the answer to tools/list, and appends its tools to `definitions` and why others are left out to
// `warnings`. Returns the cursor of the next page, or "". Throws ToolError if the page is invalid.
std::string ReadMcpToolPage(const std::string& result_json, std::vector<ToolDefinition>& definitions,
                            std::vector<std::string>& warnings);
// Returns the result of tools/call as text for the model.
ToolResult ReadMcpCallResult(const std::string& result_json);

}  // namespace vllm::app
