// Runs vllmcli with --calibration.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

class CalibrationProgramTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(GuideModel(), ""); }
  std::string Write(const std::string& text) const {
    const std::string path = temp_.path() + "/text.txt";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static ProgramResult Run(const std::string& path, const std::string& quantization = "int4") {
    return RunProgram({"complete", "-m", GuideModel(), "-q", quantization, "--calibration", path, "-t", "0", "-n", "4",
                       "Once upon a time"});
  }
  // Expects a usage error with this text on standard error.
  static void ExpectRejected(const ProgramResult& result, const std::string& text) {
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  }

  TempDirectory temp_;
};

TEST_F(CalibrationProgramTest, ATextOfOneChunkIsEnough) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "The answer to question " + std::to_string(i) + " is here. ";
  const ProgramResult result = Run(Write(text));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out, "");
}

TEST_F(CalibrationProgramTest, ATextThatTheModelWritesIsTheSameOnEveryStart) {
  const ProgramResult first = Run("self"), second = Run("self");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.out, "");
  EXPECT_EQ(first.out, second.out);
}

TEST_F(CalibrationProgramTest, OnlyAFileNeedsATokenizer) {
  const auto run = [](const std::string& text) {
    return RunProgram({"complete", "-m", std::string(VLLMCLI_TEST_DATA) + "/models/llama", "-q", "int4",
                       "--calibration", text, "--prompt-ids", "1,2,3", "-n", "2", "--json"});
  };
  const ProgramResult self = run("self"), file = run(Write("text"));
  EXPECT_EQ(self.status, 0) << self.err;
  EXPECT_EQ(file.status, 3);
  EXPECT_NE(file.err.find("the model has no tokenizer to read it"), std::string::npos) << file.err;
}

TEST_F(CalibrationProgramTest, AModelWithoutGeneratedTextNeedsAFile) {
  const std::string model = std::string(VLLMCLI_TEST_DATA) + "/pooling/bert_mean";
  ExpectRejected(RunProgram({"embed", "-m", model, "-q", "int4", "--calibration", "self", Write("text\n")}),
                 "--calibration: self: the model generates no text");
}

TEST_F(CalibrationProgramTest, AnEmptyTextIsRejected) { ExpectRejected(Run(Write("")), "is empty"); }

TEST_F(CalibrationProgramTest, InvalidUtf8IsRejected) {
  ExpectRejected(Run(Write("ab\xff"
                           "cd")),
                 "is not valid UTF-8 (at byte 2)");
}

TEST_F(CalibrationProgramTest, ATextShorterThanAChunkIsRejected) {
  ExpectRejected(Run(Write("Once upon a time")), "of at least 256 tokens");
}

TEST_F(CalibrationProgramTest, AMissingFileAndADirectoryAreRejected) {
  ExpectRejected(Run(temp_.path() + "/missing.txt"), "--calibration: ");
  ExpectRejected(Run(temp_.path()), "--calibration: ");
}

TEST_F(CalibrationProgramTest, TheFlagNeedsInt4) {
  ExpectRejected(Run(Write("text"), "int8"), "--calibration: needs --quantization int4");
}

}  // namespace
}  // namespace vllm::app
