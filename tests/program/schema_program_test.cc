// Runs --schema and --json-schema: in run, chat and batch, and in stored conversations.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;
using Flags = std::vector<std::string>;

class SchemaProgramTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(model_ = GuideModel(), ""); }
  ProgramResult Run(const Flags& flags, const std::string& input = "") const {
    ProgramOptions options = Input(input);
    options.environment = {{"XDG_CONFIG_HOME", temp_.path()}, {"XDG_DATA_HOME", temp_.path()}};
    return RunProgram(flags, options);
  }
  TempDirectory temp_;
  std::string model_;
};

TEST_F(SchemaProgramTest, RunPrintsAnObjectWithTheFields) {
  const ProgramResult result =
      Run({"run", "-m", model_, "--seed", "1", "--schema", "yes bool, no bool", "-n", "200", "Answer."});
  EXPECT_EQ(result.status, 0) << result.err;
  const Json answer = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << result.out;
  EXPECT_TRUE(answer["yes"].is_boolean());
  EXPECT_TRUE(answer["no"].is_boolean());
  EXPECT_EQ(answer.size(), 2u);
}

TEST_F(SchemaProgramTest, ARejectedSchemaIsAUsageErrorThatNamesTheKeyword) {
  const ProgramResult result = Run({"run", "-m", model_, "--json-schema", R"({"not":{"uniqueItems":true}})", "x"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err,
            "vllmcli: --json-schema: JSON schema: #/not: needs what is not supported: the opposite of uniqueItems\n");
}

TEST_F(SchemaProgramTest, RowsOfABatchMayHaveTheirOwnSchemas) {
  const std::string rows = R"({"prompt":"a"}
{"prompt":"b","structured_outputs":{"json":{"const":[1]}}}
{"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"c"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"const":"c"}}}}}
{"prompt":"d","structured_outputs":{"json":{"not":{}}}}
)";
  const ProgramResult result = Run(
      {"batch", "-m", model_, "--json-schema", R"({"const":null})", "--ordered", "--input-format", "jsonl", "-"}, rows);
  EXPECT_EQ(result.status, 1);
  std::vector<Json> records;
  for (size_t begin = 0; begin < result.out.size();) {
    const size_t end = result.out.find('\n', begin);
    records.push_back(Json::parse(result.out.substr(begin, end - begin)));
    begin = end + 1;
  }
  ASSERT_EQ(records.size(), 4u) << result.err;
  EXPECT_EQ(records[0]["outputs"][0]["text"], "null");
  EXPECT_EQ(records[1]["outputs"][0]["text"], "[1]");
  EXPECT_EQ(records[2]["response"]["body"]["choices"][0]["message"]["content"], "\"c\"");
  EXPECT_EQ(records[3]["error"]["message"], "JSON schema: #: allows no value");
}

// Only the vocabulary shows that the grammar is invalid, so it is rejected where it is compiled.
TEST_F(SchemaProgramTest, AGrammarWithATokenThatTheModelDoesNotHaveFailsItsRequestOnly) {
  const std::string grammar = "root ::= <nosuchtoken>";
  const std::string message = "grammar: the model has no token <nosuchtoken> at line 1, column 10";
  const Flags run = {"run", "-m", model_, "--grammar", temp_.Write("bad.gbnf", grammar), "x"};
  for (const char* form : {"--json", "--stream-json", "--stats"}) {
    Flags flags = run;
    flags.push_back(form);
    const ProgramResult result = Run(flags);
    EXPECT_EQ(result.status, 1) << form;
    EXPECT_EQ(result.out, "") << form;
    EXPECT_EQ(result.err, "vllmcli: " + message + "\n") << form;
  }
  const Json bad = {{"prompt", "a"}, {"structured_outputs", {{"grammar", grammar}}}};
  const ProgramResult batch =
      Run({"batch", "-m", model_, "--ordered", "--input-format", "jsonl", "--regex", "ab?", "-"},
          bad.dump() + "\n{\"prompt\":\"b\"}\n" + bad.dump() + "\n");
  EXPECT_EQ(batch.status, 1);
  std::vector<Json> records;
  std::istringstream lines(batch.out);
  for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line));
  ASSERT_EQ(records.size(), 3u) << batch.err;
  EXPECT_EQ(records[0]["error"]["code"], "invalid_request");
  EXPECT_EQ(records[0]["error"]["message"], message);
  EXPECT_EQ(records[1]["outputs"][0]["valid"], true);
  EXPECT_EQ(records[2]["error"]["message"], message);
  EXPECT_NE(batch.err.find("3 rows, 2 failed, 2 prompt and"), std::string::npos) << batch.err;
}

TEST_F(SchemaProgramTest, RunAnswersWithATextOfEachKindOfConstraint) {
  const std::string grammar = temp_.Write("list.gbnf", "root ::= \"(\" root? \")\"");
  const auto answer = [&](const Flags& constraint) {
    Flags flags = {"run", "-m", model_, "--seed", "1", "-n", "200", "Answer."};
    flags.insert(flags.end(), constraint.begin(), constraint.end());
    const ProgramResult result = Run(flags);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out.substr(0, result.out.size() - 1);
  };
  EXPECT_EQ(answer({"--regex", "x{3}"}), "xxx");
  EXPECT_EQ(answer({"--choice", "yes"}), "yes");
  EXPECT_EQ(answer({"--json-schema", "{\"const\":[1]}", "--json-whitespace", "compact"}), "[1]");
  const std::string brackets = answer({"--grammar", grammar});
  const size_t depth = brackets.find(')');
  EXPECT_EQ(brackets, std::string(depth, '(') + std::string(depth, ')'));
}

TEST_F(SchemaProgramTest, AnAnswerThatIsCutIsMarked) {
  const Flags flags = {"run", "-m", model_, "--regex", "a{90}", "-n", "3", "x"};
  const ProgramResult text = Run(flags);
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.err.find("the answer ended before it was complete; --max-tokens sets its length"), std::string::npos)
      << text.err;
  Flags json = flags;
  json.push_back("--json");
  EXPECT_EQ(Json::parse(Run(json).out)["outputs"][0]["valid"], false);
}

TEST_F(SchemaProgramTest, TheCommandSchemaConstrainsAChat) {
  const std::string path = temp_.Write("one.json", R"({"const":"one"})");
  const ProgramResult chat =
      Run({"chat", "-m", model_, "--no-save"}, "/schema " + path + "\ngo\n/schema ok bool\ngo\n");
  EXPECT_NE(chat.out.find("\"one\""), std::string::npos) << chat.out << chat.err;
  EXPECT_NE(chat.out.find("{\"ok\":"), std::string::npos) << chat.out << chat.err;
}

TEST_F(SchemaProgramTest, TheCommandSchemaReportsAFileThatIsMissing) {
  const ProgramResult chat = Run({"chat", "-m", model_, "--no-save"}, "/schema " + temp_.path() + "/none.json\n");
  EXPECT_NE(chat.err.find("/none.json: No such file or directory"), std::string::npos) << chat.out << chat.err;
  EXPECT_EQ(chat.out.find("answers are JSON"), std::string::npos) << chat.out;
}

TEST_F(SchemaProgramTest, AChatStoresTheSchemaOfAnAnswerAndContinuesWithIt) {
  const std::string schema = R"({"const":["one","two","three"]})";
  const ProgramResult chat =
      Run({"chat", "-m", model_}, "/set json-schema " + schema + "\n/set max-tokens 4\ngo\n/set max-tokens 60\n" +
                                      "/set json-schema off\n/continue\n");
  EXPECT_EQ(chat.status, 0) << chat.err;
  const Json shown = Json::parse(Run({"chats", "show", "1", "--json"}).out);
  const Json& answer = shown["messages"].back();
  EXPECT_EQ(answer["text"], R"(["one","two","three"])") << chat.out << chat.err;
}

}  // namespace
}  // namespace vllm::app
