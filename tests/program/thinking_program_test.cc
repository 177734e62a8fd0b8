// Runs the program with a model that thinks: the bundled model with think tags and a template that opens the thought.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/program/program.h"
#include "tests/support/thinking_model.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing_support::kEndThinkId;

class ThinkingProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) / ("vllmcli_thinking_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    model_ = testing_support::AddThinkTags(CopyGuideModel(directory_ / "model", {.context = 100000}));
    environment_ = {{"XDG_STATE_HOME", directory_.string()},
                    {"XDG_CONFIG_HOME", directory_.string()},
                    {"XDG_DATA_HOME", directory_.string()}};
  }
  void TearDown() override { fs::remove_all(directory_); }

  ProgramResult Run(std::vector<std::string> arguments, const std::string& input = "") const {
    ProgramOptions options = Input(input);
    options.environment = environment_;
    arguments.insert(arguments.begin() + 1, {"-m", model_, "--max-model-len", "2000"});
    return RunProgram(arguments, options);
  }
  // The only output of `run --json`.
  Json Output(const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments = {"run", "--json", "How do I run a batch?"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult result = Run(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out)["outputs"][0];
  }
  // A chat whose answers only consist of " x", which the sampler would repeat for 30,000 tokens.
  std::vector<std::string> EndlessChat() const {
    const std::string x = GuideTokenId("x");
    EXPECT_NE(x, "");
    return {"chat", "-m", model_, "--max-model-len", "30000", "--kv-cache-memory", "64M", "--allowed-token-ids", x};
  }
  // The messages that /export wrote.
  Json Exported(const std::string& name) const {
    std::ifstream file(directory_ / name);
    return Json::parse(file)["messages"];
  }

  fs::path directory_;
  std::string model_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ThinkingProgramTest, PipedRunPrintsTheAnswerOnly) {
  const Json output = Output({"--thinking-budget", "12"});
  ASSERT_TRUE(output["reasoning"].is_string());
  const ProgramResult result = Run({"run", "--thinking-budget", "12", "How do I run a batch?"});
  EXPECT_EQ(result.out, output["text"].get<std::string>() + "\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(ThinkingProgramTest, FullThinkingGoesToStandardError) {
  const Json output = Output({"--thinking-budget", "12"});
  const ProgramResult result =
      Run({"run", "--thinking-budget", "12", "--show-thinking", "full", "How do I run a batch?"});
  EXPECT_EQ(result.out, output["text"].get<std::string>() + "\n");
  EXPECT_EQ(result.err.rfind(output["reasoning"].get<std::string>() + "\n[thought ", 0), 0u) << result.err;
  const ProgramResult off =
      Run({"run", "--thinking-budget", "12", "--show-thinking", "full", "--think", "off", "How do I run a batch?"});
  EXPECT_EQ(off.err, "");
}

TEST_F(ThinkingProgramTest, JsonHasEveryTokenOnce) {
  // The prompt has two tokens after <think>, which count.
  const Json output = Output({"--thinking-budget", "12"});
  const std::vector<int32_t> ids = output["reasoning_token_ids"];
  ASSERT_EQ(ids.size(), 11u);
  EXPECT_EQ(ids.back(), kEndThinkId);
  const Json raw = Output({"--thinking-budget", "12", "--reasoning-parser", "qwen3"});
  EXPECT_EQ(raw, output);
  // Without a parser the same tokens are the answer.
  const Json begin = Output({"--reasoning-parser", "none", "-n", "10"});
  EXPECT_EQ(begin["token_ids"].get<std::vector<int32_t>>(), std::vector<int32_t>(ids.begin(), ids.end() - 1));
  EXPECT_FALSE(begin.contains("reasoning"));
}

TEST_F(ThinkingProgramTest, JsonOfAStoredRunHasTheThoughtToo) {
  const Json output = Output({"--thinking-budget", "12"});
  ASSERT_TRUE(output["reasoning"].is_string());
  EXPECT_EQ(Output({"--thinking-budget", "12", "--save"}), output);
  EXPECT_TRUE(fs::exists(directory_ / "vllmcli" / "chats.db"));
}

TEST_F(ThinkingProgramTest, StreamedDeltasAddUpToTheWholeOutput) {
  const Json whole = Output({"--thinking-budget", "12"});
  const ProgramResult result = Run({"run", "--stream-json", "--thinking-budget", "12", "How do I run a batch?"});
  std::string text;
  std::string reasoning;
  std::vector<int32_t> ids;
  std::vector<int32_t> reasoning_ids;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const Json delta = Json::parse(line);
    text += delta["text"].get<std::string>();
    if (!delta["reasoning"].is_null()) reasoning += delta["reasoning"].get<std::string>();
    for (const int32_t id : delta["token_ids"]) ids.push_back(id);
    for (const int32_t id : delta["reasoning_token_ids"]) reasoning_ids.push_back(id);
  }
  EXPECT_EQ(text, whole["text"]);
  EXPECT_EQ(reasoning, whole["reasoning"]);
  EXPECT_EQ(Json(ids), whole["token_ids"]);
  EXPECT_EQ(Json(reasoning_ids), whole["reasoning_token_ids"]);
}

TEST_F(ThinkingProgramTest, BatchRowsEqualSingleRuns) {
  const Json whole = Output({"--thinking-budget", "12"});
  const std::string message = "\"messages\":[{\"role\":\"user\",\"content\":\"How do I run a batch?\"}]";
  const ProgramResult result =
      Run({"batch", "-", "--ordered"},
          "{" + message + ",\"thinking_token_budget\":12}\n" +
              "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{" + message +
              ",\"thinking_token_budget\":12}}\n" + "{" + message +
              ",\"chat_template_kwargs\":{\"enable_thinking\":false},\"max_tokens\":4}\n");
  EXPECT_EQ(result.status, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(Json::parse(line)["outputs"][0], whole);
  std::getline(lines, line);
  const Json body = Json::parse(line)["response"]["body"];
  EXPECT_EQ(body["choices"][0]["message"],
            Json({{"role", "assistant"}, {"content", whole["text"]}, {"reasoning", whole["reasoning"]}}));
  EXPECT_EQ(body["usage"]["completion_tokens_details"]["reasoning_tokens"], 11);
  std::getline(lines, line);
  EXPECT_TRUE(Json::parse(line)["outputs"][0]["reasoning"].is_null());
  EXPECT_EQ(Json::parse(line)["outputs"][0]["token_ids"].size(), 4u);
}

TEST_F(ThinkingProgramTest, BudgetNeedsAMarker) {
  const ProgramResult result = Run({"run", "--thinking-budget", "12", "--reasoning-parser", "none", "hello"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("this model has no known marker that ends its thinking (12)"), std::string::npos)
      << result.err;
}

TEST_F(ThinkingProgramTest, ChatStoresTheThoughtAndLeavesItOutOfTheNextPrompt) {
  const std::string path = (directory_ / "chat.json").string();
  const ProgramResult result = Run({"chat", "--thinking-budget", "12", "-n", "30"},
                                   "What is vllmcli?\n/thinking\nHow do I stop?\n/export " + path + "\n");
  EXPECT_EQ(result.status, 0) << result.err;
  const Json messages = Exported("chat.json");
  ASSERT_EQ(messages.size(), 4u);
  const std::string thinking = messages[1]["thinking"];
  EXPECT_NE(thinking, "");
  EXPECT_EQ(messages[1]["num_thinking_ids"], 11);
  EXPECT_EQ(messages[1]["token_ids"][10], kEndThinkId);
  EXPECT_NE(result.err.find(thinking + "\n[thought briefly, 11 tokens]"), std::string::npos) << result.err;
  EXPECT_EQ(result.out.find(thinking), std::string::npos);
  // The next prompt continues the first one before its generation prompt, without the thought.
  const auto first_size = messages[0]["token_ids"].size();
  EXPECT_GT(messages[2]["ids_begin"], 0);
  EXPECT_LT(messages[2]["ids_begin"], first_size);
  for (const Json& id : messages[2]["token_ids"]) EXPECT_NE(id, kEndThinkId);
}

TEST_F(ThinkingProgramTest, ControlTEndsTheThought) {
  PtyProgram chat(EndlessChat(), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("Once\r");
  ASSERT_TRUE(chat.WaitFor("tokens (Ctrl-T answers now)")) << chat.output();
  chat.Send("/typed\x14");
  ASSERT_TRUE(chat.WaitFor("[thought ")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("x x x")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("[interrupted; /continue resumes it]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("/typed")) << chat.output();  // the keys before Ctrl-T
  chat.Send("\x15/export " + (directory_ / "chat.json").string() + "\r");
  ASSERT_TRUE(chat.WaitFor("[written to ")) << chat.output();
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_TRUE(chat.TerminalIsRestored());
  const Json answer = Exported("chat.json")[1];
  const std::vector<int32_t> ids = answer["token_ids"];
  const auto num_thinking_ids = answer["num_thinking_ids"].get<size_t>();
  ASSERT_GT(num_thinking_ids, 1u);
  ASSERT_LT(num_thinking_ids, ids.size());
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kEndThinkId), 1);
  EXPECT_EQ(ids[num_thinking_ids - 1], kEndThinkId);
}

TEST_F(ThinkingProgramTest, InterruptedThoughtCanBeContinuedOrLeft) {
  PtyProgram chat(EndlessChat(), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("Once\r");
  ASSERT_TRUE(chat.WaitFor("tokens (Ctrl-T answers now)")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("[interrupted; /continue resumes it]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/export " + (directory_ / "before.json").string() + "\r");
  ASSERT_TRUE(chat.WaitFor("[written to ")) << chat.output();
  chat.Send("/continue\r");
  ASSERT_TRUE(chat.WaitFor("tokens (Ctrl-T answers now)")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("[interrupted; /continue resumes it]")) << chat.output();
  chat.Send("/set max-tokens 3\r");
  chat.Send("Twice\r");
  ASSERT_TRUE(chat.WaitFor("[cut off after 3 tokens")) << chat.output();
  chat.Send("/export " + (directory_ / "after.json").string() + "\r");
  ASSERT_TRUE(chat.WaitFor("[written to ")) << chat.output();
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
  const Json before = Exported("before.json");
  const Json after = Exported("after.json");
  const std::vector<int32_t> first = before[1]["token_ids"];
  const std::vector<int32_t> continued = after[1]["token_ids"];
  ASSERT_LT(first.size(), continued.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), continued.begin()));
  EXPECT_EQ(after[1]["text"], "");
  // The next question's prompt has neither the half thought nor its marker, except in the generation prompt.
  const std::vector<int32_t> question = after[2]["token_ids"];
  EXPECT_EQ(std::count(question.begin(), question.end(), testing_support::kThinkId), 1);
  EXPECT_LT(question.size(), 40u);
}

TEST_F(ThinkingProgramTest, ThinkingCanBeSwitchedInAChat) {
  const std::string path = (directory_ / "chat.json").string();
  const ProgramResult result = Run(
      {"chat", "-n", "5"}, "/think off\nhello\n/set think on\n/regen\n/think maybe\n/think\n/export " + path + "\n");
  EXPECT_NE(result.err.find("must be on, off, low, medium or high (maybe)"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("think          on"), std::string::npos) << result.err;
  const Json messages = Exported("chat.json");
  ASSERT_EQ(messages.size(), 4u) << "the question is asked again, because its prompt is another one";
  EXPECT_EQ(messages[0]["template_variables"], "{\"enable_thinking\":false}");
  EXPECT_EQ(messages[2]["template_variables"], "{\"enable_thinking\":true}");
  EXPECT_EQ(messages[1]["thinking"], "");
  EXPECT_NE(messages[3]["thinking"], "");
}

}  // namespace
}  // namespace vllm::app
