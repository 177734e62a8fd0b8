// Tests tool calls in the outputs of the program, with a model that writes a known answer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/program/program.h"
#include "tests/support/scripted_model.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kAnswer =
    "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": "
    "3}}\n</tool_call>";
constexpr const char* kCall =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_call>";
constexpr const char* kTools = R"([{"type":"function","function":{"name":"get_weather"}}])";

class ToolCallsProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_tool_calls_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    model_ = testing_support::WriteScriptedModel(directory_ / "model", kAnswer, testing_support::kCallTokens);
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Runs one row, and returns its record.
  Json Record(const std::string& row, const std::string& parser = "hermes") {
    std::ofstream(directory_ / "in.jsonl") << row << "\n";
    const ProgramResult result = RunProgram(
        {"batch", directory_ / "in.jsonl", "-m", model_, "-t", "0", "--tool-call-parser", parser, "--quiet"});
    return Json::parse(result.out, nullptr, false);
  }
  static std::string Row(const std::string& fields) {
    return R"({"messages":[{"role":"user","content":"hi"}],"tools":)" + std::string(kTools) + fields + "}";
  }
  static std::string OpenAiRow(const std::string& fields) {
    return R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":)" + Row(fields) + "}";
  }

  fs::path directory_;
  std::string model_;
};

TEST_F(ToolCallsProgramTest, PlainRowsListTheCalls) {
  const Json output = Record(Row("")).at("outputs").at(0);
  EXPECT_EQ(output.at("text"), "Let me see.");
  EXPECT_FALSE(output.contains("valid"));
  const Json& call = output.at("tool_calls").at(0);
  EXPECT_EQ(call.at("type"), "function");
  EXPECT_EQ(call.at("id").get<std::string>().substr(0, 5), "call_");
  EXPECT_EQ(call.at("function").at("name"), "get_weather");
  EXPECT_EQ(call.at("function").at("arguments"), "{\"city\": \"Oslo\", \"days\": 3}");
}

TEST_F(ToolCallsProgramTest, OpenAiRowsHaveOpenAisForm) {
  const Json choice = Record(OpenAiRow("")).at("response").at("body").at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_EQ(choice.at("message").at("content"), "Let me see.");
  EXPECT_EQ(choice.at("message").at("tool_calls").at(0).at("function").at("name"), "get_weather");
}

TEST_F(ToolCallsProgramTest, CallsAreTextIfTheyAreNotWanted) {
  EXPECT_EQ(Record(Row(R"(,"tool_choice":"none")")).at("outputs").at(0).at("text"), kAnswer);
  EXPECT_EQ(Record(Row(""), "none").at("outputs").at(0).at("text"), kAnswer);
  const Json message =
      Record(OpenAiRow(R"(,"tool_choice":"none")")).at("response").at("body").at("choices").at(0).at("message");
  EXPECT_EQ(message.at("content"), kAnswer);
  EXPECT_FALSE(message.contains("tool_calls"));
}

TEST_F(ToolCallsProgramTest, ARequiredCallIsTheWholeAnswer) {
  model_ = testing_support::WriteScriptedModel(directory_ / "calls", kCall, testing_support::kCallTokens);
  for (const char* choice : {R"("required")", R"({"type":"function","function":{"name":"get_weather"}})"}) {
    const Json output = Record(Row(R"(,"tool_choice":)" + std::string(choice))).at("outputs").at(0);
    EXPECT_EQ(output.at("text"), "") << choice;
    EXPECT_EQ(output.at("tool_calls").at(0).at("function").at("arguments"), "{\"city\": \"Oslo\", \"days\": 3}");
  }
}

TEST_F(ToolCallsProgramTest, ChoicesThatCannotBeEnforcedAreErrors) {
  const auto error = [&](const std::string& fields, const std::string& parser) {
    const Json record = Record(Row(fields), parser);
    EXPECT_EQ(record.at("error").at("code"), "invalid_request");
    return record.at("error").at("message").get<std::string>();
  };
  const std::string required = R"(,"tool_choice":"required")";
  EXPECT_EQ(error(required, "none"),
            "tool_choice: required is not possible: the format of the model's tool calls is not known; "
            "--tool-call-parser names it");
  EXPECT_EQ(error(required + R"(,"ignore_eos":true)", "hermes"),
            "tool_choice: required is not possible: ignore_eos is set");
  EXPECT_EQ(error(required + R"(,"structured_outputs":{"regex":"a"})", "hermes"),
            "tool_choice: required excludes structured_outputs and response_format");
}

TEST_F(ToolCallsProgramTest, SchemasOfRequiredAndStrictToolsAreEnforcedOrRejected) {
  const auto row = [](const std::string& fields, const std::string& rest) {
    return R"({"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"get_weather",)" +
           fields + "}}]" + rest + "}";
  };
  const std::string bad = R"("parameters":{"$ref":"http://example.com/"})";
  for (const std::string& line : {row(bad, R"(,"tool_choice":"required")"), row(bad + R"(,"strict":true)", "")}) {
    const Json record = Record(line);
    EXPECT_TRUE(
        record.at("error").at("message").get<std::string>().starts_with("tool get_weather: JSON schema: #/$ref"))
        << record;
  }
  EXPECT_EQ(Record(row(bad, "")).at("outputs").at(0).at("tool_calls").size(), 1u);
  // The model cannot write another city.
  const std::string good = R"("parameters":{"type":"object","properties":{"city":{"enum":["Oslo"]}}})";
  EXPECT_EQ(Record(row(good, "")).at("outputs").at(0).at("tool_calls").size(), 1u);
}

TEST_F(ToolCallsProgramTest, OtherConstraintsComeBeforeThoseOfTools) {
  const Json output = Record(Row(R"(,"structured_outputs":{"choice":["Let me see.\n"]})")).at("outputs").at(0);
  EXPECT_EQ(output.at("text"), "Let me see.\n");
  EXPECT_EQ(output.at("tool_calls"), Json::array());
}

TEST_F(ToolCallsProgramTest, ACutCallStaysText) {
  const Json output = Record(Row(R"(,"max_tokens":9)")).at("outputs").at(0);
  EXPECT_EQ(output.at("tool_calls"), Json::array());
  EXPECT_EQ(output.at("finish_reason"), "length");
  EXPECT_NE(output.at("text").get<std::string>().find("get_weather"), std::string::npos) << output;
}

TEST_F(ToolCallsProgramTest, AnUnknownParserIsAnError) {
  const ProgramResult result =
      RunProgram({"batch", "-", "-m", model_, "--tool-call-parser", "nothing"}, Input(Row("") + "\n"));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("--tool-call-parser"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace vllm::app
