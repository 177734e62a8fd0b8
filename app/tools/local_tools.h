// LocalTools: tools that are programs on this machine. A call runs the program without a shell and gives it the
// arguments as JSON on standard input; what it writes to standard output is the result. Owned by ToolBox; main thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "app/tools/child_process.h"
#include "app/tools/tool_source.h"

namespace vllm::app {

struct LocalTool {
  ToolDefinition definition;
  ChildCommand command;  // argv is empty if there is only a definition
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
};

class LocalTools : public ToolSource {
 public:
  // REQUIRES: the names of the tools differ.
  explicit LocalTools(std::vector<LocalTool> tools);

  const std::vector<ToolDefinition>& definitions() const override { return definitions_; }
  std::string OriginOf(size_t index) const override;
  ToolResult Run(size_t index, const std::string& arguments, std::span<const PollHook> hooks) override;

 private:
  std::vector<LocalTool> tools_;
  std::vector<ToolDefinition> definitions_;
};

}  // namespace vllm::app
