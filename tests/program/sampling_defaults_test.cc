#include "app/model/sampling_defaults.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/command_line.h"
#include "tests/program/program.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

SamplingDefaults Defaults(std::vector<std::string> flags, const GenerationConfig& generation) {
  flags.insert(flags.begin(), "run");
  return MakeSamplingDefaults(ParseCommandLine(std::move(flags), Command::kRun).settings, generation);
}

std::string SourceOf(const SamplingDefaults& defaults, const std::string& name) {
  for (const SamplingValue& value : defaults.values) {
    if (value.name == name) return value.source;
  }
  return "";
}

TEST(SamplingDefaultsTest, ModelWithoutSamplingParametersGetsTheDefaultsOfLlamaCpp) {
  const SamplingDefaults defaults = Defaults({}, {});
  EXPECT_EQ(defaults.params.temperature, 0.8);
  EXPECT_EQ(defaults.params.top_k, 40);
  EXPECT_EQ(defaults.params.top_p, 0.95);
  EXPECT_EQ(defaults.params.min_p, 0.05);
  EXPECT_EQ(defaults.params.repetition_penalty, 1.0);
  EXPECT_EQ(SourceOf(defaults, "temperature"), "default");
  EXPECT_EQ(SamplingText(defaults.values), "temperature 0.8, top-k 40, top-p 0.95, min-p 0.05 (default)");
}

TEST(SamplingDefaultsTest, ModelWithOneSamplingParameterGetsNeutralValuesForTheRest) {
  GenerationConfig generation;
  generation.temperature = 0.6;
  const SamplingDefaults defaults = Defaults({}, generation);
  EXPECT_EQ(defaults.params.temperature, 0.6);
  EXPECT_EQ(defaults.params.top_k, 0);
  EXPECT_EQ(defaults.params.top_p, 1.0);
  EXPECT_EQ(defaults.params.min_p, 0.0);
  EXPECT_EQ(SourceOf(defaults, "temperature"), "generation_config.json");
  EXPECT_EQ(SourceOf(defaults, "top-p"), "neutral");
}

TEST(SamplingDefaultsTest, MaxNewTokensAloneIsNotASamplingParameter) {
  GenerationConfig generation;
  generation.max_new_tokens = 64;
  const SamplingDefaults defaults = Defaults({}, generation);
  EXPECT_EQ(defaults.params.max_tokens, 64);
  EXPECT_EQ(defaults.params.temperature, 0.8);
}

TEST(SamplingDefaultsTest, DoSampleFalseIsGreedy) {
  GenerationConfig generation;
  generation.do_sample = false;
  generation.temperature = 0.7;
  const SamplingDefaults defaults = Defaults({}, generation);
  EXPECT_TRUE(defaults.params.greedy());
  EXPECT_EQ(SourceOf(defaults, "temperature"), "generation_config.json");
  EXPECT_EQ(SourceOf(defaults, "top-k"), "temperature 0");
}

TEST(SamplingDefaultsTest, DoSampleTrueAloneIsNotASamplingParameter) {
  GenerationConfig generation;
  generation.do_sample = true;
  EXPECT_EQ(Defaults({}, generation).params.temperature, 0.8);
}

TEST(SamplingDefaultsTest, FlagReplacesOneValueAndKeepsTheOthers) {
  GenerationConfig generation;
  generation.origin = "GGUF metadata";
  generation.temperature = 0.6;
  generation.top_p = 0.9;
  const SamplingDefaults defaults = Defaults({"--top-p", "0.5"}, generation);
  EXPECT_EQ(SamplingText(defaults.values),
            "temperature 0.6 (GGUF metadata); top-k 0 (neutral); top-p 0.5 (command line); min-p 0.0 (neutral)");
  EXPECT_EQ(Defaults({"-t", "1"}, {}).params.top_k, 40);
}

TEST(SamplingDefaultsTest, GenerationConfigVllmIgnoresTheModelsFiles) {
  GenerationConfig generation;
  generation.do_sample = false;
  generation.max_new_tokens = 7;
  generation.repetition_penalty = 1.3;
  const SamplingDefaults defaults = Defaults({"--generation-config", "vllm", "--min-p", "0.1"}, generation);
  EXPECT_EQ(defaults.params.temperature, 1.0);
  EXPECT_EQ(defaults.params.top_k, 0);
  EXPECT_EQ(defaults.params.top_p, 1.0);
  EXPECT_EQ(defaults.params.min_p, 0.1);
  EXPECT_EQ(defaults.params.repetition_penalty, 1.0);
  EXPECT_FALSE(defaults.params.max_tokens);
  EXPECT_EQ(SourceOf(defaults, "temperature"), "--generation-config vllm");
  EXPECT_EQ(SourceOf(defaults, "min-p"), "command line");
}

TEST(SamplingDefaultsTest, JsonHasTheValueAndTheSourceOfEachParameter) {
  const Json json = SamplingJson(Defaults({"-t", "0.5", "-n", "9"}, {}).values);
  EXPECT_EQ(json["temperature"], (Json{{"value", 0.5}, {"source", "command line"}}));
  EXPECT_EQ(json["top_k"], (Json{{"value", 40}, {"source", "default"}}));
  EXPECT_EQ(json["max_tokens"], (Json{{"value", 9}, {"source", "command line"}}));
  EXPECT_FALSE(json.contains("stop"));
}

// Makes a copy of the bundled model without generation_config.json. A test may add its own generation_config.json.
class SamplingProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_sampling_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    for (const fs::directory_entry& file : fs::directory_iterator(GuideModel())) {
      if (file.path().filename() == "generation_config.json") continue;
      fs::create_symlink(file.path(), directory_ / file.path().filename());
    }
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string model() const { return directory_.string(); }

  std::filesystem::path directory_;
};

TEST_F(SamplingProgramTest, ShowAndRunReportTheSameSampling) {
  const ProgramResult show = RunProgram({"show", "--json", model()});
  ASSERT_EQ(show.status, 0) << show.err;
  const Json shown = Json::parse(show.out)["sampling"];
  EXPECT_EQ(shown["temperature"], (Json{{"value", 0.8}, {"source", "default"}}));
  const ProgramResult run = RunProgram({"run", "-m", model(), "--json", "--seed", "1", "-n", "4", "hi"});
  ASSERT_EQ(run.status, 0) << run.err;
  Json used = Json::parse(run.out)["sampling"];
  EXPECT_EQ(used["max_tokens"]["source"], "command line");
  used["max_tokens"] = shown["max_tokens"];
  EXPECT_EQ(used, shown);
}

TEST_F(SamplingProgramTest, AnswerIsSampledWithTheDefaults) {
  const std::vector<std::string> common = {"run", "-m", model(), "--json", "--seed", "3", "-n", "24", "hello"};
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), common.begin(), common.end());
    const ProgramResult result = RunProgram(flags);
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out)["outputs"];
  };
  EXPECT_EQ(with({}),
            with({"--generation-config", "vllm", "-t", "0.8", "--top-k", "40", "--top-p", "0.95", "--min-p", "0.05"}));
  std::ofstream(directory_ / "generation_config.json") << R"({"do_sample":false})";
  EXPECT_EQ(with({}), with({"-t", "0"}));
}

TEST_F(SamplingProgramTest, BatchRowsStartFromTheSameDefaults) {
  const ProgramResult plain = RunProgram({"batch", "-m", model(), "-n", "16", "-"}, Input("{\"prompt\":\"a\"}\n"));
  const ProgramResult spelled =
      RunProgram({"batch", "-m", model(), "-n", "16", "-"},
                 Input("{\"prompt\":\"a\",\"temperature\":0.8,\"top_k\":40,\"top_p\":0.95,\"min_p\":0.05}\n"));
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(plain.out, spelled.out);
}

TEST_F(SamplingProgramTest, ShowReadsTheConfigurationFile) {
  const std::string config = (directory_ / "vllmcli.toml").string();
  std::ofstream(config) << "temperature = 0.3\n";
  const ProgramResult show = RunProgram({"show", "--json", "--config", config, model()});
  ASSERT_EQ(show.status, 0) << show.err;
  EXPECT_EQ(Json::parse(show.out)["sampling"]["temperature"], (Json{{"value", 0.3}, {"source", "configuration file"}}));
}

}  // namespace
}  // namespace vllm::app
