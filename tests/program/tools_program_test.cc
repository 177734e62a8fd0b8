// Runs tools that a model calls, in run and in chat, with a model that makes the calls of the test.
#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/program/program.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;
using Flags = std::vector<std::string>;

const std::string kTools = std::string(VLLMCLI_TEST_DATA) + "/tools";

class ToolsProgramTest : public testing::Test {
 protected:
  // A model that calls `call` first, and answers the result.
  std::string Model(const std::string& call) const {
    return testing_support::WriteScriptedToolModel(temp_.path() + "/model", "Let me see.\n" + call,
                                                   "It is [done], my friend.");
  }
  std::string AddModel() const {
    return Model(R"(<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>)");
  }
  std::map<std::string, std::string> Environment() const {
    return {{"XDG_CONFIG_HOME", temp_.path()}, {"XDG_DATA_HOME", temp_.path()}, {"XDG_STATE_HOME", temp_.path()}};
  }
  ProgramResult Run(const Flags& flags, const std::string& input = "") const {
    ProgramOptions options = Input(input);
    options.environment = Environment();
    return RunProgram(flags, options);
  }
  Json Messages(const std::string& chat) const {
    return Json::parse(Run({"chats", "show", chat, "--json"}).out)["messages"];
  }
  TempDirectory temp_;
};

TEST_F(ToolsProgramTest, RunCallsAToolAndAnswersWithItsResult) {
  const ProgramResult result =
      Run({"run", "-m", AddModel(), "--tools", kTools, "--approve-tools", "always", "-t", "0", "2+3?"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "Let me see.\nIt is [done], my friend.\n");
  EXPECT_NE(result.err.find("[call] add({\"a\":2,\"b\":3})\n[result] 5\n"), std::string::npos) << result.err;
}

TEST_F(ToolsProgramTest, WithoutATerminalNoCallRuns) {
  const ProgramResult result = Run({"run", "-m", AddModel(), "--tools", kTools, "-t", "0", "2+3?"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("vllmcli: the call was refused, because there is no terminal to ask on\n"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("[result] error: the call was not allowed\n"), std::string::npos) << result.err;
}

TEST_F(ToolsProgramTest, NeverRefusesWithoutAsking) {
  const ProgramResult result =
      Run({"run", "-m", AddModel(), "--tools", kTools, "--approve-tools", "never", "-t", "0", "2+3?"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("[result] error: the user did not allow this call"), std::string::npos) << result.err;
}

TEST_F(ToolsProgramTest, TheChainLimitEndsTheAnswerWithStatus1) {
  // A template that gives the result to the model as a question: it calls the tool again and again.
  const std::string model = AddModel();
  std::ifstream file(model + "/tokenizer_config.json");
  Json config = Json::parse(file);
  std::string source = config["chat_template"];
  source.replace(source.find("<|answer_to_tool|>"), 18, "<|answer|>");
  std::ofstream(temp_.path() + "/t.jinja") << source;
  const ProgramResult result = Run({"run", "-m", model, "--chat-template", temp_.path() + "/t.jinja", "--tools", kTools,
                                    "--approve-tools", "always", "--chain-limit", "2", "-t", "0", "2+3?"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("vllmcli: the model still calls tools after 2 rounds of calls\n"), std::string::npos)
      << result.err;
}

TEST_F(ToolsProgramTest, AChatStoresCallsAndResultsWithTheTokensThatTheModelRead) {
  const ProgramResult chat =
      Run({"chat", "-m", AddModel(), "--tools", kTools, "--approve-tools", "always", "-t", "0"}, "2+3?\nand again?\n");
  EXPECT_EQ(chat.status, 0) << chat.err;
  const Json messages = Messages("1");
  ASSERT_EQ(messages.size(), 8u) << chat.err;
  EXPECT_EQ(messages[1]["text"], "Let me see.");
  EXPECT_EQ(Json::parse(messages[1]["tool_calls"].get<std::string>())[0]["function"]["arguments"],
            Json({{"a", 2}, {"b", 3}}));
  EXPECT_EQ(messages[2]["role"], "tool");
  EXPECT_EQ(messages[2]["text"], "5\n");
  EXPECT_EQ(messages[2]["tool_name"], "add");
  EXPECT_EQ(messages[3]["text"], "It is [done], my friend.");
  // Every prompt begins with all earlier tokens: nothing is tokenized again.
  int64_t num_tokens = 0;
  for (const Json& message : messages) {
    EXPECT_GE(message["ids_begin"].get<int64_t>() + 1, num_tokens) << message;
    num_tokens = message["ids_begin"].get<int64_t>() + static_cast<int64_t>(message["token_ids"].size());
  }
}

TEST_F(ToolsProgramTest, AResumedChatContinuesTheSamePrompt) {
  const Flags tools = {"--tools", kTools, "--approve-tools", "always", "-t", "0"};
  Flags first = {"chat", "-m", AddModel()};
  first.insert(first.end(), tools.begin(), tools.end());
  ASSERT_EQ(Run(first, "2+3?\n/new\n2+3?\nand again?\n").status, 0);
  Flags second = {"chat", "-m", temp_.path() + "/model", "--resume", "1"};
  second.insert(second.end(), tools.begin(), tools.end());
  ASSERT_EQ(Run(second, "and again?\n").status, 0);
  const Json resumed = Messages("1");
  const Json whole = Messages("2");
  ASSERT_EQ(resumed.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(resumed[i]["ids_begin"], whole[i]["ids_begin"]) << i;
    EXPECT_EQ(resumed[i]["token_ids"], whole[i]["token_ids"]) << i;
  }
}

TEST_F(ToolsProgramTest, AnMcpServersToolIsCalled) {
  const std::string model = Model(R"(<tool_call>{"name": "upper", "arguments": {"text": "abc"}}</tool_call>)");
  std::filesystem::create_directories(temp_.path() + "/vllmcli");
  std::ofstream(temp_.path() + "/vllmcli/config.toml")
      << "[mcp.test]\ncommand = [\"" << MCP_TEST_SERVER << "\", \"log-on-stdout\"]\nenv = {A = \"b\"}\ntimeout = 20\n";
  const ProgramResult result = Run({"run", "-m", model, "--approve-tools", "always", "-t", "0", "--save", "abc?"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Messages("1")[2]["text"], "ABC");
}

TEST_F(ToolsProgramTest, ADeadMcpServerIsAMessageForTheModel) {
  const std::string model = Model(R"(<tool_call>{"name": "upper", "arguments": {"text": "abc"}}</tool_call>)");
  const ProgramResult result = Run({"run", "-m", model, "--mcp", std::string(MCP_TEST_SERVER) + " 'dies-in-call'",
                                    "--approve-tools", "always", "-t", "0", "--save", "abc?"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Messages("1")[2]["text"],
            "error: MCP server mcp1: ended with status 3 without an answer; its last message: out of cheese");
}

TEST_F(ToolsProgramTest, AChatOnATerminalAsksAndRemembersAlways) {
  PtyProgram chat({"chat", "-m", AddModel(), "--tools", kTools, "-t", "0"}, Environment());
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("2+3?\r");
  ASSERT_TRUE(chat.WaitFor("[y/n/a] ")) << chat.output();
  chat.Send("n\r");
  ASSERT_TRUE(chat.WaitFor("[result] error: the user did not allow this call")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("2+3?\r");
  ASSERT_TRUE(chat.WaitFor("[y/n/a] ")) << chat.output();
  chat.Send("a\r");
  ASSERT_TRUE(chat.WaitFor("[result] 5")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("2+3?\r");
  ASSERT_TRUE(chat.WaitFor("[result] 5")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ToolsProgramTest, ControlCEndsAToolAndTheChatContinues) {
  std::ofstream(temp_.path() + "/t.toml") << "[[tool]]\nname = 'wait'\ncommand = ['sh', '-c', 'sleep 1000']\n";
  const std::string model = Model(R"(<tool_call>{"name": "wait", "arguments": {}}</tool_call>)");
  PtyProgram chat({"chat", "-m", model, "--tools", temp_.path() + "/t.toml", "--approve-tools", "always", "-t", "0"},
                  Environment());
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("wait\r");
  ASSERT_TRUE(chat.WaitFor("[call] wait({})")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("[interrupted;")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ToolsProgramTest, TheCallsOfACutAnswerAreShownButNotRun) {
  const auto errors = [&](const char* max_tokens) {
    return Run({"run", "-m", AddModel(), "--tools", kTools, "--approve-tools", "always", "--max-tokens", max_tokens,
                "-t", "0", "2+3?"})
        .err;
  };
  EXPECT_TRUE(errors("6").starts_with("[incomplete call] add({\"a\""));
  EXPECT_TRUE(errors("9").starts_with("[call not run] add({\"a\":2,\"b\":3})\n[cut off after 9 tokens]"));
}

TEST_F(ToolsProgramTest, DefinitionsAloneAreShownAndTheirCallsArePrinted) {
  const std::string tools = R"([{"type":"function","function":{"name":"add","parameters":{}}}])";
  const ProgramResult result = Run({"run", "-m", AddModel(), "--tools", tools, "-t", "0", "2+3?"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out,
            "Let me see.\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}</tool_call>\n");
  const Json output =
      Json::parse(Run({"run", "-m", AddModel(), "--tools", tools, "-t", "0", "--json", "2+3?"}).out)["outputs"][0];
  EXPECT_EQ(output["text"], "Let me see.");
  EXPECT_EQ(output["tool_calls"][0]["function"]["name"], "add");
  EXPECT_EQ(output["tool_calls"][0]["function"]["arguments"], "{\"a\": 2, \"b\": 3}");
}

TEST_F(ToolsProgramTest, TheLastAnswerInJsonHasItsCalls) {
  const ProgramResult result =
      Run({"run", "-m", AddModel(), "--tools", kTools, "--approve-tools", "always", "-t", "0", "--json", "2+3?"});
  const Json output = Json::parse(result.out)["outputs"][0];
  EXPECT_EQ(output["text"], "It is [done], my friend.");
  EXPECT_EQ(output["tool_calls"], Json::array());
}

TEST_F(ToolsProgramTest, MistakesInTheTableOfAServerAreNamed) {
  std::filesystem::create_directories(temp_.path() + "/vllmcli");
  const std::string path = temp_.path() + "/vllmcli/config.toml";
  const auto error = [&](const std::string& text) {
    std::ofstream(path) << text;
    return Run({"config"}).err;
  };
  EXPECT_EQ(error("[mcp.a]\n"), "vllmcli: " + path + ":1:1: [mcp.a] command is missing\n");
  EXPECT_EQ(error("[mcp.a]\ncommand = 'x'\n"),
            "vllmcli: " + path + ":2:1: [mcp.a] command: must be an array, the program and its arguments\n");
  EXPECT_EQ(error("[mcp.a]\ncommand = ['x']\nenv = 1\n"),
            "vllmcli: " + path + ":3:1: [mcp.a] env: must be a table such as {TOKEN = \"x\"}\n");
}

}  // namespace
}  // namespace vllm::app
