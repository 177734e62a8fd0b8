// Runs the loop of calls, results and answers in the situations that are not simple: a choice of tools, several
// answers, a chat that was killed, and a chat in front of a batch.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/program/program.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;
using Flags = std::vector<std::string>;

const std::string kTools = std::string(VLLMCLI_TEST_DATA) + "/tools";
constexpr const char* kAdd = R"(<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>)";
constexpr const char* kAnswer = "It is [done], my friend.";

class ToolLoopProgramTest : public testing::Test {
 protected:
  void SetUp() override { UseModel(std::string("Let me see.\n") + kAdd); }

  // From now on, the model answers a question with `answer`, and then the results of tools.
  void UseModel(const std::string& answer) {
    model_ = testing_support::WriteScriptedToolModel(temp_.path() + "/model" + std::to_string(num_models_++), answer,
                                                     kAnswer);
  }
  std::map<std::string, std::string> Environment() const {
    return {{"XDG_CONFIG_HOME", temp_.path()},
            {"XDG_DATA_HOME", temp_.path()},
            {"XDG_STATE_HOME", temp_.path()},
            {"LC_ALL", "C.UTF-8"}};
  }
  // Runs the command with the model at temperature 0.
  ProgramResult Run(Flags flags, const std::string& input = "") const {
    ProgramOptions options = Input(input);
    options.environment = Environment();
    flags.insert(flags.begin() + 1, {"-m", model_, "-t", "0"});
    return RunProgram(flags, options);
  }
  ProgramResult Chat(const std::string& lines, Flags flags = {}) const {
    flags.insert(flags.begin(), {"chat", "--tools", kTools, "--approve-tools", "always"});
    ProgramResult result = Run(flags, lines);
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  // Returns the messages of a stored conversation as {role, text} in the order in which they were stored.
  Json Messages(const std::string& chat) const {
    ProgramOptions options;
    options.environment = Environment();
    const Json stored = Json::parse(RunProgram({"chats", "show", chat, "--json"}, options).out);
    Json messages = Json::array();
    for (const Json& message : stored.at("messages")) messages.push_back({message["role"], message["text"]});
    return messages;
  }
  // Returns the answer of `run --json` with these flags and a question.
  Json Output(Flags flags) const {
    flags.insert(flags.begin(), {"run", "--json"});
    flags.emplace_back("2+3?");
    const ProgramResult result = Run(flags);
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out, nullptr, false).at("outputs").at(0);
  }
  static std::string Contents(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TempDirectory temp_;
  std::string model_;
  int num_models_ = 0;
};

constexpr const char* kDefinitions =
    R"([{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}}])";

TEST_F(ToolLoopProgramTest, TheChoiceNoneMakesCallsText) {
  const Json output = Output({"--tools", kDefinitions, "--tool-choice", "none"});
  EXPECT_EQ(output["text"], std::string("Let me see.\n") + kAdd);
  EXPECT_FALSE(output.contains("tool_calls"));
  const ProgramResult run =
      Run({"run", "--tools", kTools, "--approve-tools", "always", "--tool-choice", "none", "2+3?"});
  EXPECT_EQ(run.out, std::string("Let me see.\n") + kAdd + "\n");
}

TEST_F(ToolLoopProgramTest, ARequiredCallComesWithoutText) {
  for (const char* choice : {"required", "add"}) {
    const Json output = Output({"--tools", kDefinitions, "--tool-choice", choice, "-n", "20"});
    EXPECT_EQ(output["text"].get<std::string>().find("Let me see."), std::string::npos) << choice;
  }
  UseModel(kAdd);
  for (const char* choice : {"required", "add"}) {
    const Json output = Output({"--tools", kDefinitions, "--tool-choice", choice});
    EXPECT_EQ(output["text"], "") << choice;
    EXPECT_EQ(output["tool_calls"].at(0)["function"]["name"], "add") << choice;
  }
}

// The template gives the result to the model as the answer that it has been asked for, without another call.
TEST_F(ToolLoopProgramTest, ARequiredCallIsRequiredOnlyOnce) {
  UseModel(kAdd);
  const ProgramResult run =
      Run({"run", "--tools", kTools, "--approve-tools", "always", "--tool-choice", "required", "2+3?"});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, std::string(kAnswer) + "\n");
  EXPECT_NE(run.err.find("[call] add({\"a\":2,\"b\":3})\n[result] 5\n"), std::string::npos) << run.err;
}

TEST_F(ToolLoopProgramTest, AChoiceThatNoToolSatisfiesIsAnError) {
  const ProgramResult unknown = Run({"run", "--tools", kTools, "--tool-choice", "sub", "2+3?"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("vllmcli: --tool-choice: no tool has this name (sub)\n"), std::string::npos)
      << unknown.err;
  for (const char* command : {"run", "chat"}) {
    const ProgramResult none = Run({command, "--tool-choice", "required"}, "2+3?\n");
    EXPECT_EQ(none.status, 2) << command;
    EXPECT_NE(none.err.find("vllmcli: --tool-choice: the request has no tools\n"), std::string::npos) << none.err;
  }
}

TEST_F(ToolLoopProgramTest, AChatChangesTheChoice) {
  const ProgramResult chat = Chat("/set tool-choice sub\n/set tool-choice none\n2+3?\n/regen tool-choice=auto\n");
  EXPECT_NE(chat.err.find("--tool-choice: no tool has this name (sub)"), std::string::npos) << chat.err;
  EXPECT_EQ(Messages("1"), Json::parse(R"([["user","2+3?"],
      ["assistant","Let me see.\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}</tool_call>"],
      ["assistant","Let me see."],["tool","5\n"],["assistant","It is [done], my friend."]])"));
}

TEST_F(ToolLoopProgramTest, TheChoiceOfABatchHoldsForRowsWithoutOne) {
  const std::string plain = R"({"messages":[{"role":"user","content":"2+3?"}])";
  const std::string input =
      temp_.Write("in.jsonl", plain + "}\n" + plain + ",\"tool_choice\":\"auto\"}\n" + plain + ",\"tools\":[]}\n" +
                                  plain + R"(,"tools":[{"name":"sub"}]})" + "\n");
  const ProgramResult batch =
      Run({"batch", input, "--tools", kDefinitions, "--tool-choice", "add", "--ordered", "-n", "20", "--quiet"});
  EXPECT_EQ(batch.status, 1);
  std::vector<Json> records;
  for (size_t begin = 0; begin < batch.out.size();) {
    const size_t end = batch.out.find('\n', begin);
    records.push_back(Json::parse(batch.out.substr(begin, end - begin)));
    begin = end + 1;
  }
  ASSERT_EQ(records.size(), 4u) << batch.out << batch.err;
  EXPECT_EQ(records[0]["outputs"][0]["text"].get<std::string>().find("Let me see."), std::string::npos);
  EXPECT_EQ(records[1]["outputs"][0]["text"], "Let me see.");
  EXPECT_FALSE(records[2]["outputs"][0].contains("tool_calls"));
  EXPECT_EQ(records[3]["error"]["message"], "tool_choice: no tool has this name (add)");
}

TEST_F(ToolLoopProgramTest, TheChoiceOfABatchOfTextsIsChecked) {
  const std::string input = temp_.Write("in.txt", "2+3?\n");
  const ProgramResult batch = Run({"batch", input, "--tools", kDefinitions, "--tool-choice", "sub"});
  EXPECT_EQ(batch.status, 2);
  EXPECT_NE(batch.err.find("vllmcli: --tool-choice: no tool has this name (sub)\n"), std::string::npos) << batch.err;
}

TEST_F(ToolLoopProgramTest, AJobIsNotResumedWithAnotherChoice) {
  const std::string input = temp_.Write("in.jsonl", R"({"messages":[{"role":"user","content":"2+3?"}]})"
                                                    "\n");
  const std::string output = temp_.path() + "/out.jsonl";
  ASSERT_EQ(Run({"batch", input, "-o", output, "--tools", kDefinitions}).status, 0);
  const ProgramResult resumed =
      Run({"batch", input, "-o", output, "--tools", kDefinitions, "--tool-choice", "none", "--resume"});
  EXPECT_EQ(resumed.status, 2);
  EXPECT_NE(resumed.err.find("tool-choice was not set and is now none"), std::string::npos) << resumed.err;
}

TEST_F(ToolLoopProgramTest, RowsOfABatchRunNoTools) {
  const std::string input = temp_.Write("in.txt", "2+3?\n");
  for (const Flags& flags : {Flags{"--approve-tools", "always"}, {"--mcp", "x"}, {"--chain-limit", "2"}}) {
    const ProgramResult batch = Run({"batch", input, flags[0], flags[1]});
    EXPECT_EQ(batch.status, 2);
    EXPECT_NE(batch.err.find("vllmcli: batch: " + flags[0] + " needs --chat, because rows run no tools\n"),
              std::string::npos)
        << batch.err;
  }
}

TEST_F(ToolLoopProgramTest, ToolsListsHidesAndShowsThem) {
  const ProgramResult chat = Chat("/tools\n/tools off\n/tools\n2+3?\n/tools on\n2+3?\n/tools ask\n/tools\n/tools x\n");
  EXPECT_NE(chat.err.find("  add  Add two integers\n      runs without asking; " + kTools + "/add\n"),
            std::string::npos)
      << chat.err;
  EXPECT_NE(chat.err.find("  echo  Return the arguments\n      runs without asking; cat\n"), std::string::npos);
  EXPECT_NE(chat.err.find("[the tools are off: the model does not see them; /tools on shows them again]"),
            std::string::npos);
  EXPECT_NE(chat.err.find("      asks first; " + kTools + "/add\n"), std::string::npos);
  EXPECT_NE(chat.err.find("/tools x: expects on, off or ask"), std::string::npos);
  EXPECT_EQ(Messages("1"), Json::parse(R"([["user","2+3?"],
      ["assistant","Let me see.\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}</tool_call>"],
      ["user","2+3?"],["assistant","Let me see."],["tool","5\n"],["assistant","It is [done], my friend."]])"));
}

TEST_F(ToolLoopProgramTest, EachOfSeveralAnswersRunsItsTools) {
  const ProgramResult chat = Chat("/answers 2 temperature=0.1\n2+3?\n/answers 2 temperature=0.1\n/answers\nthanks\n");
  EXPECT_NE(chat.err.find("[answer 3]\n[call] add({\"a\":2,\"b\":3})\n[result] 5\n"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("* 2  Let me see."), std::string::npos) << chat.err;
  const Json round = Json::parse(R"([["assistant","Let me see."],["tool","5\n"],
                                     ["assistant","It is [done], my friend."]])");
  Json expected = Json::parse(R"([["user","2+3?"]])");
  const auto add_round = [&] { expected.insert(expected.end(), round.begin(), round.end()); };
  add_round();
  // The two answers are stored first, in order.
  expected.push_back(round[0]);
  add_round();
  expected.push_back(round[1]);
  expected.push_back(round[2]);
  expected.push_back({"user", "thanks"});
  add_round();
  EXPECT_EQ(Messages("1"), expected);
}

// Kills a chat while the second of two tools runs.
class KilledChatTest : public ToolLoopProgramTest {
 protected:
  void SetUp() override {
    UseModel(
        "<tool_call>{\"name\": \"count\", \"arguments\": {}}</tool_call>\n<tool_call>\n{\"name\": \"wait\",\n"
        "\"arguments\":{}}\n</tool_call>");
    tools_ =
        temp_.Write("t.toml", "[[tool]]\nname = 'count'\ncommand = ['sh', '-c', 'echo x >> " + counted_ +
                                  "; echo counted']\n[[tool]]\nname = 'wait'\ncommand = ['sh', '-c', 'test -e " +
                                  started_ + " && echo waited && exit; touch " + started_ + "; exec sleep 1000']\n");
    PtyProgram chat({"chat", "-m", model_, "-t", "0", "--tools", tools_, "--approve-tools", "always"}, Environment());
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    chat.Send("go\r");
    ASSERT_TRUE(chat.WaitFor("[call] wait({})")) << chat.output();
    while (!std::filesystem::exists(started_)) std::this_thread::yield();
    kill(chat.pid(), SIGKILL);
    ASSERT_EQ(chat.WaitForExit(), 128 + SIGKILL);
  }
  // Continues the chat, and returns the messages.
  Json Continue(const std::string& lines) {
    const ProgramResult chat = Run({"chat", "-c", "--tools", tools_, "--approve-tools", "always"}, lines);
    EXPECT_EQ(chat.status, 0) << chat.err;
    err_ = chat.err;
    return Messages("1");
  }

  std::string tools_;
  std::string counted_ = temp_.path() + "/counted";
  std::string started_ = temp_.path() + "/started";
  std::string err_;
};

TEST_F(KilledChatTest, ContinueRunsOnlyCallsWithoutAResult) {
  EXPECT_EQ(Continue("/continue\n"), Json::parse(R"([["user","go"],["assistant",""],["tool","counted\n"],
                                                     ["tool","waited\n"],["assistant","It is [done], my friend."]])"));
  EXPECT_EQ(Contents(counted_), "x\n");
  EXPECT_NE(err_.find("[1 call of tools has no result; /continue runs it]"), std::string::npos) << err_;
}

TEST_F(KilledChatTest, TheNextQuestionLeavesThemOut) {
  const Json messages = Continue("never mind\n");
  ASSERT_GE(messages.size(), 5u);
  EXPECT_EQ(messages[3], Json::parse(R"(["tool","error: the call was not run: the user asked something else"])"));
  EXPECT_EQ(messages[4], Json::parse(R"(["user","never mind"])"));
}

TEST_F(ToolLoopProgramTest, AnInterruptedCallIsAnswered) {
  UseModel(R"(<tool_call>{"name": "wait", "arguments": {}}</tool_call>)");
  const std::string tools = temp_.Write("t.toml", "[[tool]]\nname = 'wait'\ncommand = ['sh', '-c', 'sleep 1000']\n");
  PtyProgram chat({"chat", "-m", model_, "-t", "0", "--tools", tools}, Environment());
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("go\r");
  ASSERT_TRUE(chat.WaitFor("[y/n/a] ")) << chat.output();
  chat.Send("y\r");
  ASSERT_TRUE(chat.WaitFor("[wait is still running; Ctrl-C stops it]")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("count as failed; /continue resumes it]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/continue\r");
  ASSERT_TRUE(chat.WaitFor("my friend.")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_EQ(Messages("1")[2], Json::parse(R"(["tool","error: the user stopped the tool"])"));
}

// Trained models that have never seen a tool, on a terminal, with an executable and a table of tools.
class TrainedModelToolsTest : public ToolLoopProgramTest {
 protected:
  void SetUp() override {
    tools_ = temp_.path() + "/tools";
    std::filesystem::create_directory(tools_);
    std::filesystem::copy_file(kTools + "/add", tools_ + "/add");
    std::ofstream(tools_ + "/weather.toml")
        << "[[tool]]\nname = 'weather'\ndescription = 'Weather of a city'\ncommand = ['printf', 'sunny\\033[2J']\n"
           "[tool.parameters]\ntype = 'object'\nproperties.city.enum = ['Oslo']\nrequired = ['city']\n";
  }
  [[nodiscard]] bool Start(const Flags& more = {}) {
    Flags flags = {"chat", "-m", model_, "-t", "0", "-n", "60", "--tools", tools_, "--tool-choice", "weather"};
    flags.insert(flags.end(), more.begin(), more.end());
    chat_ = std::make_unique<PtyProgram>(flags, Environment());
    return chat_->WaitFor(">>> ");
  }
  // Asks, expects the call, answers the question about it with `key`, expects the result, and waits for the prompt.
  [[nodiscard]] bool Ask(const std::string& message, const std::string& call, const std::string& key,
                         const std::string& result) {
    chat_->Send(message + "\r");
    if (!chat_->WaitFor("[call] " + call)) return false;
    if (!key.empty()) {
      if (!chat_->WaitFor("[y/n/a] ")) return false;
      chat_->Send(key + "\r");
    }
    return chat_->WaitFor("[result] " + result) && chat_->WaitFor(">>> ");
  }
  [[nodiscard]] bool Set(const std::string& choice) {
    chat_->Send("/set tool-choice " + choice + "\r");
    return chat_->WaitFor(">>> ");
  }
  void Quit() {
    chat_->Send("/exit\r");
    EXPECT_EQ(chat_->WaitForExit(), 0);
  }

  std::string tools_;
  std::unique_ptr<PtyProgram> chat_;
};

TEST_F(TrainedModelToolsTest, TheGuideMakesACallThatItMustMake) {
  ASSERT_NE(model_ = GuideModel(), "");
  // Otherwise it indents the JSON until its answer is cut.
  ASSERT_TRUE(Start({"--frequency-penalty", "2"})) << chat_->output();
  ASSERT_TRUE(
      Ask("How is the weather?", "weather({\"city\":\"Oslo\"})", "n", "error: the user did not allow this call"))
      << chat_->output();
  ASSERT_TRUE(Ask("/regen", "weather({\"city\":\"Oslo\"})", "a", "sunny<1b>[2J")) << chat_->output();
  ASSERT_TRUE(Ask("And now?", "weather({\"city\":\"Oslo\"})", "", "sunny<1b>[2J")) << chat_->output();
  Quit();
  EXPECT_EQ(chat_->output().find("\x1b[2J"), std::string::npos);
}

TEST_F(TrainedModelToolsTest, SmolLm2CallsProgramsAndAnMcpServer) {
  model_ = RealModel("SmolLM2-135M-Instruct");
  if (model_.empty()) GTEST_SKIP() << "reference data not found: SmolLM2-135M-Instruct";
  ASSERT_TRUE(Start({"--mcp", MCP_TEST_SERVER})) << chat_->output();
  ASSERT_TRUE(Ask("How is the weather in Oslo?", "weather({\"city\":\"Oslo\"})", "y", "sunny<1b>[2J"))
      << chat_->output();
  ASSERT_TRUE(Set("add")) << chat_->output();
  ASSERT_TRUE(Ask("What is 17 + 25?", "add({\"a\":17,\"b\":25})", "y", "42")) << chat_->output();
  ASSERT_TRUE(Set("upper")) << chat_->output();
  ASSERT_TRUE(Ask("Write hello in upper case.", "upper({\"text\":", "y", "")) << chat_->output();
  Quit();
  ASSERT_TRUE(Start({"-c", "--approve-tools", "never"})) << chat_->output();
  ASSERT_TRUE(Ask("And the weather?", "weather({\"city\":\"Oslo\"})", "", "error: the user did not allow this call"))
      << chat_->output();
  Quit();
}

TEST_F(ToolLoopProgramTest, TheChatInFrontOfABatchRunsTools) {
  std::string rows;
  for (int i = 0; i < 4; ++i) {
    rows += R"({"custom_id":")" + std::to_string(i) + R"(","messages":[{"role":"user","content":"2+3?"}]})" + "\n";
  }
  const std::string input = temp_.Write("in.jsonl", rows);
  const std::string output = temp_.path() + "/out.jsonl";
  PtyProgram batch(
      {"batch", "-m", model_, "-t", "0", input, "-o", output, "--tools", kTools, "--chat", "--mcp", MCP_TEST_SERVER},
      Environment());
  ASSERT_TRUE(batch.WaitFor(">>> ")) << batch.output();
  batch.Send("/tools\r");
  ASSERT_TRUE(batch.WaitFor("asks first; MCP server mcp1")) << batch.output();
  // Changes the tools of the chat, but not those of the rows.
  batch.Send("/tools off\r");
  ASSERT_TRUE(batch.WaitFor("[the model no longer sees the tools]")) << batch.output();
  batch.Send("/tools on\r");
  ASSERT_TRUE(batch.WaitFor("[the model sees the tools again]")) << batch.output();
  batch.Send("2+3?\r");
  ASSERT_TRUE(batch.WaitFor("[y/n/a] ")) << batch.output();
  batch.Send("y\r");
  ASSERT_TRUE(batch.WaitFor("[result] 5")) << batch.output();
  ASSERT_TRUE(batch.WaitFor("my friend.")) << batch.output();
  ASSERT_TRUE(batch.WaitFor(">>> ")) << batch.output();
  batch.Send("/exit\r");
  EXPECT_EQ(batch.WaitForExit(), 0) << batch.output();
  const std::map<std::string, Json> records = ReadBatchRecords(output);
  ASSERT_EQ(records.size(), 4u);
  const ProgramResult alone = Run({"batch", input, "-o", temp_.path() + "/alone.jsonl", "--tools", kTools});
  EXPECT_EQ(alone.status, 0) << alone.err;
  for (const auto& [id, record] : ReadBatchRecords(temp_.path() + "/alone.jsonl")) {
    EXPECT_EQ(records.at(id)["outputs"][0]["token_ids"], record["outputs"][0]["token_ids"]);
    EXPECT_EQ(records.at(id)["prompt_tokens"], record["prompt_tokens"]);
  }
}

}  // namespace
}  // namespace vllm::app
