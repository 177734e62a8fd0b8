// Tests tool calls in the outputs of the program, with a model that writes a known answer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

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

  // Runs rows, and returns their records.
  std::vector<Json> Records(const std::string& rows, const std::string& parser = "hermes") {
    std::ofstream(directory_ / "in.jsonl") << rows << "\n";
    const ProgramResult result = RunProgram({"batch", directory_ / "in.jsonl", "-m", model_, "-t", "0",
                                             "--tool-call-parser", parser, "--ordered", "--quiet"});
    std::vector<Json> records;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line, nullptr, false));
    return records;
  }
  Json Record(const std::string& row, const std::string& parser = "hermes") { return Records(row, parser).at(0); }
  static std::string Row(const std::string& fields) {
    return R"({"messages":[{"role":"user","content":"hi"}],"tools":)" + std::string(kTools) + fields + "}";
  }
  static std::string OpenAiRow(const std::string& fields, const std::string& id = "a") {
    return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/chat/completions","body":)" + Row(fields) + "}";
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

TEST_F(ToolCallsProgramTest, NothingOfACutCallIsText) {
  const std::string whole = R"({"city": "Oslo", "days": 3})";
  std::string rows, open_ai_rows;
  for (int max_tokens = 4; max_tokens <= 40; ++max_tokens) {
    const std::string limit = R"(,"max_tokens":)" + std::to_string(max_tokens);
    rows += Row(limit) + "\n";
    open_ai_rows += OpenAiRow(limit, "a" + std::to_string(max_tokens)) + "\n";
  }
  std::string arguments;
  const std::vector<Json> records = Records(rows);
  const std::vector<Json> open_ai_records = Records(open_ai_rows);
  ASSERT_EQ(records.size(), 37u);
  ASSERT_EQ(open_ai_records.size(), 37u);
  for (size_t i = 0; i < records.size(); ++i) {
    const Json& output = records[i].at("outputs").at(0);
    if (output.at("finish_reason") == "stop") break;
    EXPECT_EQ(output.at("finish_reason"), "length");
    EXPECT_EQ(output.at("text"), "Let me see.") << output;
    const Json& choice = open_ai_records[i].at("response").at("body").at("choices").at(0);
    EXPECT_EQ(choice.at("finish_reason"), "length");
    EXPECT_EQ(choice.at("message").contains("tool_calls"), !output.at("tool_calls").empty());
    if (output.at("tool_calls").empty()) continue;
    const Json& function = output.at("tool_calls").at(0).at("function");
    EXPECT_EQ(function.at("name"), "get_weather");
    arguments = function.at("arguments").get<std::string>();
    EXPECT_TRUE(whole.starts_with(arguments)) << arguments;
    // If the call is complete, only the end-of-sequence token is missing.
    EXPECT_TRUE(output.contains("valid") ? output.at("valid") == false : arguments == whole) << output;
  }
  EXPECT_FALSE(arguments.empty()) << "some answer was cut inside the arguments";
}

TEST_F(ToolCallsProgramTest, AnUnknownParserIsAnError) {
  const ProgramResult result =
      RunProgram({"batch", "-", "-m", model_, "--tool-call-parser", "nothing"}, Input(Row("") + "\n"));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("--tool-call-parser"), std::string::npos) << result.err;
}

// Rows with and without a choice of the tool, for a model that was not trained to call tools and draws almost any
// token.
class ToolChoiceProgramTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_tool_choice_" + GetParam() + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  static constexpr const char* kTools =
      R"([{"type":"function","function":{"name":"turn","parameters":{"type":"object","properties":{)"
      R"("to":{"enum":["left","right"]},"far":{"type":"boolean"}},"required":["to"],"additionalProperties":false}}},)"
      R"({"type":"function","function":{"name":"stop","parameters":{"additionalProperties":false}}}])";

  // Runs a row for each seed, and returns their outputs.
  std::vector<Json> Outputs(const std::string& fields) {
    constexpr int kNumRows = 6;
    std::ofstream file(directory_ / "in.jsonl");
    for (int i = 0; i < kNumRows; ++i) {
      file << R"({"messages":[{"role":"user","content":"Call a tool."}],"max_tokens":150,"temperature":2,"seed":)" << i
           << R"(,"tools":)" << kTools << fields << "}\n";
    }
    file.close();
    const ProgramResult result = RunProgram({"batch", directory_ / "in.jsonl", "-m", GuideModel(), "--tool-call-parser",
                                             GetParam(), "--reasoning-parser", "none", "--quiet"});
    EXPECT_EQ(result.status, 0) << result.err;
    std::vector<Json> outputs;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      const Json record = Json::parse(line);
      if (record.contains("outputs")) outputs.push_back(record.at("outputs").at(0));
    }
    EXPECT_EQ(outputs.size(), static_cast<size_t>(kNumRows)) << result.out;
    return outputs;
  }

  // Checks the calls of an output, and returns their names.
  static std::vector<std::string> Names(const Json& output) {
    EXPECT_FALSE(output.contains("valid") && output.at("finish_reason") == "stop") << output;
    std::vector<std::string> names;
    for (const Json& call : output.at("tool_calls")) {
      const Json& function = call.at("function");
      names.push_back(function.at("name"));
      const bool is_cut = output.at("finish_reason") == "length" && &call == &output.at("tool_calls").back();
      if (is_cut) continue;
      const Json arguments = Json::parse(function.at("arguments").get<std::string>());
      if (names.back() == "stop") {
        EXPECT_EQ(arguments, Json::object());
        continue;
      }
      EXPECT_EQ(names.back(), "turn");
      EXPECT_TRUE(arguments.at("to") == "left" || arguments.at("to") == "right") << arguments;
      EXPECT_TRUE(!arguments.contains("far") || arguments.at("far").is_boolean()) << arguments;
      EXPECT_LE(arguments.size(), 2u);
    }
    return names;
  }

  fs::path directory_;
};

TEST_P(ToolChoiceProgramTest, ARequiredCallIsWritten) {
  for (const Json& output : Outputs(R"(,"tool_choice":"required")")) {
    EXPECT_EQ(output.at("text"), "");
    const std::vector<std::string> names = Names(output);
    EXPECT_TRUE(!names.empty() || output.at("valid") == false) << output;
  }
}

TEST_P(ToolChoiceProgramTest, ANamedToolIsCalledOnce) {
  for (const Json& output : Outputs(R"(,"tool_choice":{"type":"function","function":{"name":"turn"}})")) {
    EXPECT_EQ(output.at("text"), "");
    const std::vector<std::string> names = Names(output);
    EXPECT_TRUE(output.at("finish_reason") == "length" || names == std::vector<std::string>{"turn"}) << output;
  }
}

TEST_P(ToolChoiceProgramTest, CallsOfTheModelsChoiceAreValid) {
  for (const Json& output : Outputs(R"(,"tool_choice":"auto","parallel_tool_calls":false)")) {
    EXPECT_LE(Names(output).size(), 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ToolChoiceProgramTest,
                         testing::Values("hermes", "llama3_json", "mistral", "kimi_k2", "qwen3_coder", "pythonic",
                                         "gemma4", "openai"));

}  // namespace
}  // namespace vllm::app
