// Runs --use-beam-search and --best-of: in run, complete and batch.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

class BeamSearchProgramTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(model_ = GuideModel(), ""); }
  ProgramResult Run(const std::vector<std::string>& flags, const std::string& input = "") const {
    ProgramOptions options = Input(input);
    options.environment = {{"XDG_CONFIG_HOME", temp_.path()}, {"XDG_DATA_HOME", temp_.path()}};
    return RunProgram(flags, options);
  }
  TempDirectory temp_;
  std::string model_;
};

TEST_F(BeamSearchProgramTest, CompletePrintsTheBestAndJsonHasAllWithTheirScores) {
  const std::vector<std::string> flags = {"complete", "-m", model_, "--use-beam-search", "--beam-width",
                                          "3",        "-n", "12",   "How do I run"};
  std::vector<std::string> json_flags = flags;
  json_flags.insert(json_flags.begin() + 1, "--json");
  const ProgramResult result = Run(json_flags);
  ASSERT_EQ(result.status, 0) << result.err;
  const Json outputs = Json::parse(result.out)["outputs"];
  ASSERT_EQ(outputs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(outputs[i]["index"], i);
    EXPECT_TRUE(outputs[i]["cumulative_logprob"].is_number());
    if (i == 0) continue;
    EXPECT_GE(outputs[i - 1]["score"].get<double>(), outputs[i]["score"].get<double>());
  }
  const ProgramResult text = Run(flags);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out, outputs[0]["text"].get<std::string>() + "\n");
}

TEST_F(BeamSearchProgramTest, RowsOfABatchMayUseBeamSearch) {
  const std::string rows = R"({"prompt":"How do I","max_tokens":6,"use_beam_search":true,"beam_width":2}
{"prompt":"How do I","max_tokens":6,"use_beam_search":true,"n":2,"length_penalty":0.5}
{"prompt":"How do I","max_tokens":6,"n":1,"best_of":4,"temperature":1}
{"prompt":"How do I","max_tokens":6,"beam_width":2}
{"prompt":"How do I","max_tokens":6,"use_beam_search":true,"stop":["x"]}
)";
  const ProgramResult result =
      Run({"batch", "-m", model_, "--ordered", "--no-apply-chat-template", "--input-format", "jsonl", "-"}, rows);
  EXPECT_EQ(result.status, 1);
  std::vector<Json> records;
  for (size_t begin = 0; begin < result.out.size();) {
    const size_t end = result.out.find('\n', begin);
    records.push_back(Json::parse(result.out.substr(begin, end - begin)));
    begin = end + 1;
  }
  ASSERT_EQ(records.size(), 5u) << result.err;
  EXPECT_EQ(records[0]["outputs"].size(), 2u);
  EXPECT_TRUE(records[0]["outputs"][1]["score"].is_number());
  EXPECT_EQ(records[1]["outputs"].size(), 2u);
  EXPECT_EQ(records[2]["outputs"].size(), 1u);
  EXPECT_EQ(records[2]["outputs"][0]["score"], records[2]["outputs"][0]["cumulative_logprob"]);
  EXPECT_EQ(records[3]["error"]["message"], "beam_width: needs use_beam_search (2)");
  EXPECT_EQ(records[4]["error"]["message"], "stop: not possible with use_beam_search");
}

TEST_F(BeamSearchProgramTest, AConversationRejectsBeamSearch) {
  const ProgramResult result = Run({"run", "-m", model_, "--save", "--use-beam-search", "x"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "vllmcli: run: --use-beam-search cannot be used with -c, --resume, --save or tools that run\n");
  const ProgramResult chat = Run({"chat", "-m", model_, "--use-beam-search"});
  EXPECT_EQ(chat.status, 2);
  EXPECT_NE(chat.err.find("--use-beam-search"), std::string::npos) << chat.err;
}

}  // namespace
}  // namespace vllm::app
