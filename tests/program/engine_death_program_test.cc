// Runs the program with one or two ranks. One rank fails at load, in the profiling run or at a later step. The program
// must exit with status 1 and print the cause to standard error. A batch must write an error record for each submitted
// row. Also tests a request whose logits contain NaN.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

class EngineDeathProgramTest : public testing::Test {
 protected:
  ProgramResult Run(std::vector<std::string> arguments, const std::string& when, int rank, int call, int ranks) {
    ProgramOptions options;
    options.program = VLLMCLI_FAULT_INJECTION_BINARY;
    options.environment = {
        {"FAULT_WHEN", when}, {"FAULT_RANK", std::to_string(rank)}, {"FAULT_CALL", std::to_string(call)}};
    arguments.insert(arguments.end(), {"-m", model_, "-tp", std::to_string(ranks)});
    return RunProgram(arguments, options);
  }

  TempDirectory temp_;
  // The bundled model with the architecture that faulty_model.h describes.
  std::string model_ = CopyGuideModel(temp_.path() + "/model", {.architecture = "FaultyForCausalLM"});
};

TEST_F(EngineDeathProgramTest, ProgramExitsWithStatusOneAndPrintsTheCause) {
  std::mt19937 random(4);
  for (int i = 0; i < 24; ++i) {
    const int ranks = 1 + i % 2;
    const int rank = static_cast<int>(random() % static_cast<unsigned>(ranks));
    // Call 0 is the profiling run. Later calls are steps of the answer.
    const int call = i % 4 == 0 ? 0 : 1 + static_cast<int>(random() % 20);
    const std::string when = i % 6 == 5 ? "load" : "forward";
    const ProgramResult result = Run({"complete", "one two", "--ignore-eos", "-n", "60"}, when, rank, call, ranks);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_NE(result.err.find("the faulty model throws"), std::string::npos) << result.err;
  }
}

TEST_F(EngineDeathProgramTest, BatchWritesARecordForEachSubmittedRow) {
  const std::string rows = temp_.Write("rows.txt", "one\ntwo\nthree\nfour\n");
  for (const int ranks : {1, 2}) {
    const ProgramResult result = Run({"batch", rows, "--ignore-eos", "-n", "60"}, "forward", ranks - 1, 12, ranks);
    EXPECT_EQ(result.status, 1);
    // The number of rows that the batch has submitted when the rank fails depends on timing.
    std::istringstream lines(result.out);
    std::set<int> indices;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      EXPECT_NE(record["error"]["message"].get<std::string>().find("the faulty model throws"), std::string::npos);
      EXPECT_TRUE(indices.insert(record["index"].get<int>()).second) << line;
    }
    ASSERT_FALSE(indices.empty());
    EXPECT_EQ(*indices.rbegin(), static_cast<int>(indices.size()) - 1);
    EXPECT_LE(indices.size(), 4U);
  }
}

TEST_F(EngineDeathProgramTest, DeathOfOneEngineFailsTheRowsOfAll) {
  const std::string rows = temp_.Write("rows.txt", "one\ntwo\nthree\nfour\n");
  const ProgramResult result = Run({"batch", rows, "--ignore-eos", "-n", "60", "-dp", "2"}, "forward", 0, 12, 1);
  EXPECT_EQ(result.status, 1);
  std::istringstream lines(result.out);
  int num_records = 0;
  for (std::string line; std::getline(lines, line); ++num_records) {
    EXPECT_NE(line.find("data-parallel engine "), std::string::npos) << line;
    EXPECT_NE(line.find("the faulty model throws"), std::string::npos) << line;
  }
  EXPECT_GT(num_records, 0);
}

TEST_F(EngineDeathProgramTest, RequestWithNaNLogitsFails) {
  const ProgramResult result = Run({"complete", "one", "--ignore-eos", "-n", "30"}, "logits", 0, 9, 1);
  EXPECT_EQ(result.status, 1);
  EXPECT_FALSE(result.err.empty());
}

}  // namespace
}  // namespace vllm::app
