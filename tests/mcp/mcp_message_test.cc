// Parses messages of MCP servers.
#include "app/mcp/mcp_message_reader.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

using Kind = McpMessage::Kind;

TEST(McpMessageTest, AResponseKeepsItsResultAsText) {
  const McpMessage message = ParseMcpMessage(R"({"jsonrpc":"2.0","id":7,"result":{"b":1,"a":[2]}})");
  EXPECT_EQ(message.kind, Kind::kResponse);
  EXPECT_EQ(message.id, 7);
  EXPECT_EQ(message.text, R"({"b":1,"a":[2]})");
}

TEST(McpMessageTest, AnErrorHasCodeMessageAndData) {
  const McpMessage message =
      ParseMcpMessage(R"({"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"no","data":{"supported":[]}}})");
  EXPECT_EQ(message.kind, Kind::kError);
  EXPECT_EQ(message.error_code, -32022);
  EXPECT_EQ(message.text, "no");
  EXPECT_EQ(message.data, R"({"supported":[]})");
}

TEST(McpMessageTest, RequestsAndNotificationsDifferByTheirId) {
  const McpMessage request = ParseMcpMessage(R"({"jsonrpc":"2.0","id":"q","method":"ping"})");
  EXPECT_EQ(request.kind, Kind::kRequest);
  EXPECT_EQ(request.id_json, "\"q\"");
  EXPECT_EQ(ParseMcpMessage(R"({"jsonrpc":"2.0","method":"x"})").kind, Kind::kNotification);
}

TEST(McpMessageTest, OtherLinesAreNoise) {
  for (const char* line : {"", "INFO: started", "[1]", R"({"level":"info"})", "{"}) {
    EXPECT_EQ(ParseMcpMessage(line).kind, Kind::kNoise) << line;
  }
}

TEST(McpMessageTest, InvalidMessagesAreBroken) {
  for (const char* line : {R"({"jsonrpc":"2.0","id":1,)", R"({"jsonrpc":"1.0","id":1,"result":1})",
                           R"({"jsonrpc":"2.0","id":1})", R"({"jsonrpc":"2.0","id":1,"error":{"code":"x"}})",
                           R"({"jsonrpc":"2.0","id":1,"error":[]})", R"({"jsonrpc":"2.0","method":1})"}) {
    EXPECT_EQ(ParseMcpMessage(line).kind, Kind::kBroken) << line;
  }
}

TEST(McpMessageTest, DeepNestingIsBroken) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(ParseMcpMessage(R"({"jsonrpc":"2.0","id":1,"result":)" + deep + "}").kind, Kind::kBroken);
}

TEST(McpMessageReaderTest, LinesMayBeSplitAnywhere) {
  const std::string text =
      "noise\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\r\n{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n";
  for (size_t split = 0; split <= text.size(); ++split) {
    McpMessageReader reader;
    std::vector<McpMessage> messages;
    reader.Feed(text.substr(0, split), messages);
    reader.Feed(text.substr(split), messages);
    ASSERT_EQ(messages.size(), 2u) << split;
    EXPECT_EQ(messages[0].id, 1);
    EXPECT_EQ(messages[1].method, "m");
    EXPECT_EQ(reader.num_ignored_lines(), 1);
  }
}

TEST(McpMessageReaderTest, ALineThatIsTooLongIsReportedOnceAndSkipped) {
  McpMessageReader reader;
  std::vector<McpMessage> messages;
  for (int i = 0; i < 20; ++i) reader.Feed(std::string(1 << 20, 'x'), messages);
  reader.Feed("\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n", messages);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].kind, Kind::kBroken);
  EXPECT_EQ(messages[1].id, 1);
}

}  // namespace
}  // namespace vllm::app
