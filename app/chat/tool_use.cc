#include "app/chat/tool_use.h"

#include <utility>

#include "app/mcp/mcp_tools.h"
#include "app/mcp/server_settings.h"
#include "app/model/tools_setting.h"
#include "app/terminal/output_stream.h"
#include "app/tools/tool_loader.h"

namespace vllm::app {

bool HasRunnableTools(const Settings& settings) {
  return NamesTools(settings.Text("tools").value_or("")) || !McpServers(settings).empty();
}

ToolUse::ToolUse(const Settings& settings)
    : approval_(ParseApprovePolicy(settings.Text("approve-tools").value_or("ask"))),
      chain_limit_(settings.Integer("chain-limit").value_or(5)) {
  for (McpServerSpec& spec : McpServers(settings)) waiting_.push_back(std::make_unique<McpTools>(std::move(spec)));
  Reload(settings);
}

ToolUse::~ToolUse() = default;

void ToolUse::Reload(const Settings& settings) {
  box_.SetLocal(std::make_unique<LocalTools>(ReadLocalTools(settings)));
}

void ToolUse::StartServers(std::span<const PollHook> hooks) {
  for (std::unique_ptr<McpTools>& server : std::exchange(waiting_, {})) {
    if (const std::string why = server->Start(hooks); !why.empty()) PrintWarning(why);
    for (const std::string& warning : server->TakeWarnings()) {
      PrintWarning("MCP server " + server->prefix() + ": " + warning);
    }
    servers_.push_back(server.get());
    box_.Add(std::move(server));
  }
  PrintOmitted();
}

bool ToolUse::Refresh(std::span<const PollHook> hooks) {
  const bool has_changed = box_.Refresh(hooks);
  for (McpTools* server : servers_) {
    for (const std::string& warning : server->TakeWarnings()) PrintWarning(warning);
  }
  if (has_changed) PrintOmitted();
  return has_changed;
}

void ToolUse::PrintOmitted() {
  for (const std::string& name : box_.TakeOmittedNames()) {
    PrintWarning("tool " + name + " is left out: another tool has this name, or it is no name of a tool");
  }
}

}  // namespace vllm::app
