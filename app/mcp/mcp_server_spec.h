// McpServerSpec: how to start an MCP server. A plain value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "app/tools/child_process.h"

namespace vllm::app {

struct McpServerSpec {
  // The versions of the protocol: kStateless is 2026-07-28, kLegacy those up to 2025-11-25, which begin with
  // `initialize`. kAuto asks the server.
  enum class Protocol : uint8_t { kAuto, kLegacy, kStateless };

  std::string name;  // for messages, and as a prefix of tools whose name is not unique
  ChildCommand command;
  Protocol protocol = Protocol::kAuto;
  std::chrono::milliseconds timeout = std::chrono::seconds(30);          // of each request
  std::chrono::milliseconds discover_timeout = std::chrono::seconds(5);  // after it, kAuto takes the server for kLegacy
  std::chrono::milliseconds shutdown_grace = std::chrono::seconds(2);    // before SIGTERM, and again before SIGKILL
};

}  // namespace vllm::app
