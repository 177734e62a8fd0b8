// Fuzzes the reader of MCP messages and of the answers to tools/list and tools/call. The first byte says how the bytes
// are split.
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/mcp/mcp_message_reader.h"
#include "app/mcp/mcp_tools.h"
#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

std::vector<app::McpMessage> Read(std::string_view bytes, size_t piece) {
  app::McpMessageReader reader;
  std::vector<app::McpMessage> messages;
  for (size_t i = 0; i < bytes.size(); i += piece) reader.Feed(bytes.substr(i, piece), messages);
  return messages;
}

void FuzzResult(const std::string& json) {
  std::vector<ToolDefinition> definitions;
  std::vector<std::string> warnings;
  try {
    app::ReadMcpToolPage(json, definitions, warnings);
  } catch (const app::ToolError&) {
  }
  for (const ToolDefinition& definition : definitions) {
    Require(IsToolName(definition.name), "tools have valid names");
    Require(nlohmann::json::accept(definition.parameters), "schemas are JSON");
  }
  const app::ToolResult result = app::ReadMcpCallResult(json);
  Require(tokenizer::IsValidUtf8(result.text), "results are UTF-8");
  Require(result.text.size() <= app::kMaxResultBytes + 100, "results are short");
}

}  // namespace

void FuzzOne(std::string_view input) {
  if (input.empty()) return;
  const std::string_view bytes = input.substr(1);
  const std::vector<app::McpMessage> whole = Read(bytes, bytes.size() + 1);
  const std::vector<app::McpMessage> pieces = Read(bytes, 1 + static_cast<unsigned char>(input[0]));
  Require(whole.size() == pieces.size(), "the pieces have the same messages");
  for (size_t i = 0; i < whole.size(); ++i) {
    Require(whole[i].kind == pieces[i].kind && whole[i].text == pieces[i].text, "the messages are equal");
    if (whole[i].kind == app::McpMessage::Kind::kResponse) FuzzResult(whole[i].text);
    if (whole[i].kind != app::McpMessage::Kind::kRequest) continue;
    const std::string answer = app::McpErrorLine(whole[i].id_json, app::McpMessage::kMethodNotFound, "no");
    Require(nlohmann::json::accept(answer), "our answer is JSON");
    Require(answer.find('\n') == answer.size() - 1, "our answer is one line");
  }
  FuzzResult(std::string(bytes));
}

}  // namespace vllm
