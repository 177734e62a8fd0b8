// ToolUse: the tools of a chat or a run, with their servers, and the rules for calling them. Owned by ChatSession; main
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "app/cli/settings.h"
#include "app/tools/tool_approval.h"
#include "app/tools/tool_box.h"

namespace vllm::app {

class McpTools;

// Returns true if the settings name tools that can be run: programs in --tools, or MCP servers. Runs nothing.
bool HasRunnableTools(const Settings& settings);

class ToolUse {
 public:
  // Loads the tools of --tools. Throws ConfigError, ResourceError, Interrupted.
  explicit ToolUse(const Settings& settings);
  ~ToolUse();
  ToolUse(const ToolUse&) = delete;
  ToolUse& operator=(const ToolUse&) = delete;

  // Replaces the tools of --tools. Throws like the constructor; the tools are then unchanged.
  void Reload(const Settings& settings);
  // Starts the MCP servers that are not started yet. Prints a warning for each that cannot be used. Throws what the
  // hooks throw.
  void StartServers(std::span<const PollHook> hooks);
  // Asks for changes of the servers' tools. Returns true if the tools have changed.
  bool Refresh(std::span<const PollHook> hooks);

  ToolBox& box() { return box_; }
  const ToolBox& box() const { return box_; }
  ToolApproval& approval() { return approval_; }
  const ToolApproval& approval() const { return approval_; }
  int64_t chain_limit() const { return chain_limit_; }  // 0: none

 private:
  void PrintOmitted();

  ToolBox box_;
  ToolApproval approval_;
  int64_t chain_limit_;
  std::vector<std::unique_ptr<McpTools>> waiting_;  // not started
  std::vector<McpTools*> servers_;                  // owned by box_
};

}  // namespace vllm::app
