// The MCP servers that the user has named: --mcp and the tables [mcp.NAME] of the configuration file. Pure functions;
// any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/cli/settings.h"
#include "app/mcp/mcp_server_spec.h"

namespace vllm::app {

// Returns the servers of --mcp, called mcp1, mcp2 and so on, after those of the configuration file. `--mcp off` means
// no server. Throws ConfigError if a command of --mcp cannot be split.
std::vector<McpServerSpec> McpServers(const Settings& settings);

// Splits a command into words at white space, with quotation marks and backslashes as in a shell, but without any
// expansion. Throws ConfigError if a quotation mark is not closed.
std::vector<std::string> SplitCommand(std::string_view command);

}  // namespace vllm::app
