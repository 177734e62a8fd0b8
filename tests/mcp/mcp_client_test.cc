// Runs McpTools with a server that has one fault at a time.
#include "app/mcp/mcp_tools.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "app/mcp/server_settings.h"

namespace vllm::app {
namespace {

using namespace std::chrono_literals;

// As in the program.
[[maybe_unused]] const auto g_ignore_sigpipe = signal(SIGPIPE, SIG_IGN);
using Names = std::vector<std::string>;

McpServerSpec Server(const std::string& fault) {
  McpServerSpec spec;
  spec.name = "test";
  spec.command.argv = {MCP_TEST_SERVER, fault};
  spec.shutdown_grace = 100ms;
  return spec;
}

Names NamesOf(const McpTools& tools) {
  Names names;
  for (const ToolDefinition& tool : tools.definitions()) names.push_back(tool.name);
  return names;
}

// Calls the first tool, `upper`, of a server with this fault.
ToolResult CallUpper(McpServerSpec spec) {
  McpTools tools(std::move(spec));
  EXPECT_EQ(tools.Start({}), "");
  return tools.Run(0, R"({"text":"abc"})", {});
}
ToolResult CallUpper(const std::string& fault) { return CallUpper(Server(fault)); }

TEST(McpToolsTest, AStatelessServerAnswersCalls) {
  McpTools tools(Server(""));
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_EQ(tools.client().version(), "2026-07-28");
  EXPECT_EQ(NamesOf(tools), (Names{"upper", "fail", "slow"}));
  EXPECT_EQ(tools.Run(0, R"({"text":"abc"})", {}).text, "ABC");
  const ToolResult failed = tools.Run(1, "{}", {});
  EXPECT_TRUE(failed.failed);
  EXPECT_EQ(failed.text, "error: it failed");
}

TEST(McpToolsTest, AnOlderServerIsInitialized) {
  McpTools tools(Server("legacy"));
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_EQ(tools.client().version(), "2025-06-18");
  EXPECT_EQ(tools.Run(0, R"({"text":"abc"})", {}).text, "ABC");
}

TEST(McpToolsTest, AServerThatEndsAtAnUnknownFirstRequestIsStartedAgain) {
  McpTools tools(Server("dies-on-discover"));
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_EQ(tools.client().version(), "2025-06-18");
}

TEST(McpToolsTest, AServerThatDoesNotAnswerDiscoverIsInitialized) {
  McpServerSpec spec = Server("silent-discover");
  spec.discover_timeout = 50ms;
  McpTools tools(spec);
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_EQ(tools.client().version(), "2025-06-18");
}

TEST(McpToolsTest, AServerWithoutACommonVersionIsRejected) {
  EXPECT_EQ(McpTools(Server("unknown-version")).Start({}),
            "MCP server test: answers with a version of the protocol that we do not know (1999-01-01)");
  EXPECT_EQ(McpTools(Server("only-future")).Start({}),
            "MCP server test: supports none of our versions of the protocol (2030-01-01)");
}

TEST(McpToolsTest, AServerThatEndsAtOnceIsAnError) {
  EXPECT_EQ(McpTools(Server("ends-at-once")).Start({}), "MCP server test: ended with status 7 without an answer");
}

TEST(McpToolsTest, AProgramThatDoesNotExistIsAnError) {
  McpServerSpec spec = Server("");
  spec.command.argv = {"/no/such/program"};
  EXPECT_EQ(McpTools(spec).Start({}), "MCP server test: cannot start /no/such/program: No such file or directory");
}

TEST(McpToolsTest, PagesOfToolsAreFollowed) {
  McpTools tools(Server("pages"));
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_EQ(NamesOf(tools), (Names{"upper", "second"}));
  EXPECT_EQ(McpTools(Server("endless-pages")).Start({}), "MCP server test: tools/list has too many pages (limit 100)");
}

TEST(McpToolsTest, InvalidToolsAreLeftOut) {
  McpTools tools(Server("bad-tools"));
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_EQ(NamesOf(tools), (Names{"upper"}));
  EXPECT_EQ(tools.TakeWarnings().size(), 2u);
}

TEST(McpToolsTest, FaultsThatDoNoHarmAreIgnored) {
  for (const char* fault : {"large-stderr", "log-on-stdout", "json-log-on-stdout", "out-of-order", "asks-us"}) {
    EXPECT_EQ(CallUpper(fault).text, "ABC") << fault;
  }
}

TEST(McpToolsTest, ASecondAnswerIsNotTakenForTheNextOne) {
  McpTools tools(Server("answers-twice"));
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_EQ(tools.Run(0, R"({"text":"abc"})", {}).text, "ABC");
  EXPECT_EQ(tools.Run(0, R"({"text":"def"})", {}).text, "DEF");
  EXPECT_GE(tools.client().num_ignored(), 1);
}

TEST(McpToolsTest, ADeadServerIsAnErrorForTheModel) {
  McpTools tools(Server("dies-in-call"));
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_EQ(tools.Run(0, "{}", {}).text,
            "error: MCP server test: ended with status 3 without an answer; its last message: out of cheese");
  EXPECT_EQ(tools.Run(0, "{}", {}).text, "error: MCP server test: has ended");
}

TEST(McpToolsTest, BrokenAnswersAreErrors) {
  EXPECT_EQ(CallUpper("long-line").text,
            "error: MCP server test: broke the protocol: a line is too long (limit 8 MiB)");
  EXPECT_EQ(CallUpper("broken-json").text, "error: MCP server test: broke the protocol: not valid JSON");
  EXPECT_EQ(CallUpper("closes-stdout").text, "error: MCP server test: closed its standard output without an answer");
  EXPECT_EQ(CallUpper("input-required").text,
            "error: the server asks for more input (input_required), which is not supported");
}

TEST(McpToolsTest, InvalidUtf8IsReplaced) { EXPECT_EQ(CallUpper("invalid-utf8").text, "a\xEF\xBF\xBD\x1b[2J"); }

TEST(McpToolsTest, AMissingAnswerIsATimeout) {
  McpServerSpec spec = Server("no-answer");
  spec.timeout = 200ms;
  EXPECT_EQ(CallUpper(spec).text,
            "error: MCP server test: no answer to tools/call within 200 ms; the call may have run");
}

TEST(McpToolsTest, AHookEndsACall) {
  std::array<int, 2> fds{};
  ASSERT_EQ(pipe(fds.data()), 0);
  ASSERT_EQ(write(fds[1], "x", 1), 1);
  McpTools tools(Server(""));
  ASSERT_EQ(tools.Start({}), "");
  const PollHook hook = {fds[0], [] { return false; }};
  const ToolResult result = tools.Run(2, "{}", {&hook, 1});
  EXPECT_TRUE(result.was_interrupted);
  EXPECT_EQ(tools.Run(0, R"({"text":"abc"})", {}).text, "ABC");
  close(fds[0]);
  close(fds[1]);
}

TEST(McpToolsTest, AChangedListIsReadAgain) {
  McpTools tools(Server("list-changed"));
  ASSERT_EQ(tools.Start({}), "");
  EXPECT_FALSE(tools.Refresh({}));
  EXPECT_EQ(tools.Run(0, R"({"text":"abc"})", {}).text, "ABC");
  EXPECT_TRUE(tools.Refresh({}));
  EXPECT_EQ(NamesOf(tools), (Names{"upper", "added"}));
  EXPECT_FALSE(tools.Refresh({}));
}

TEST(McpToolsTest, AServerThatIgnoresSignalsIsKilled) { EXPECT_EQ(CallUpper("ignores-signals").text, "ABC"); }

TEST(McpServersTest, CommandsAreSplitAsInAShellWithoutExpansion) {
  EXPECT_EQ(SplitCommand(R"(a  "b c" 'd "e' f\ g $HOME *)"), (Names{"a", "b c", "d \"e", "f g", "$HOME", "*"}));
  EXPECT_EQ(SplitCommand("''"), (Names{""}));
}

}  // namespace
}  // namespace vllm::app
