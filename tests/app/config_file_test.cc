#include "app/config/config_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "engine/config/errors.h"

namespace vllm {
namespace {

class ConfigFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("vllmcli_config_" + std::to_string(::getpid()) + ".toml");
    settings_.command = Command::kBatch;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void Read(const std::string& text) {
    std::ofstream(path_) << text;
    ReadConfigFile(path_.string(), settings_);
  }
  std::string ErrorOf(const std::string& text) {
    try {
      Read(text);
    } catch (const ConfigError& error) {
      const std::string message = error.what();
      return message.substr(std::min(message.size(), path_.string().size()));
    }
    return "";
  }

  std::filesystem::path path_;
  Settings settings_;
};

TEST_F(ConfigFileTest, KeysAreFlagsByTheirLongNames) {
  Read("temperature = 0.5\nmax_num_seqs = 7\nstop = [\"a\", \"b\"]\nignore-eos = true\nstop-token-ids = [1, 2]\n");
  EXPECT_EQ(settings_.Number("temperature"), 0.5);
  EXPECT_EQ(settings_.Integer("max-num-seqs"), 7);
  EXPECT_EQ(settings_.Texts("stop"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(settings_.Switch("ignore-eos"));
  EXPECT_EQ(settings_.Ids("stop-token-ids"), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(settings_.SourceOf("temperature"), SettingSource::kConfigFile);
}

TEST_F(ConfigFileTest, ASectionCountsForItsCommandOnly) {
  Read("max-tokens = 1\n[batch]\nmax-tokens = 2\n[run]\nmax-tokens = 3\n");
  EXPECT_EQ(settings_.Integer("max-tokens"), 2);
}

TEST_F(ConfigFileTest, FlagsAreStrongerThanTheFile) {
  settings_.Set(*FindFlag("max-tokens"), {"9"}, SettingSource::kCommandLine, "--max-tokens");
  Read("max-tokens = 1\n");
  EXPECT_EQ(settings_.Integer("max-tokens"), 9);
}

TEST_F(ConfigFileTest, AnUnknownKeyIsAnErrorWithTheNearestName) {
  EXPECT_EQ(ErrorOf("temprature = 1\n"), ": temprature: unknown key, did you mean temperature?");
  EXPECT_EQ(ErrorOf("[run]\ntopp = 1\n"), " [run]: topp: unknown key, did you mean top-p?");
  EXPECT_EQ(ErrorOf("[rnu]\n"), ": rnu: no command has this name");
}

TEST_F(ConfigFileTest, ValuesOfTheWrongKindAreErrors) {
  EXPECT_EQ(ErrorOf("max-tokens = \"x\"\n"), ": max-tokens: must be a whole number (x)");
  EXPECT_EQ(ErrorOf("temperature = nan\n"), ": temperature: must be a finite number (nan)");
  EXPECT_EQ(ErrorOf("temperature = [1]\n"), ": temperature: must be one value");
  EXPECT_NE(ErrorOf("temperature = {a = 1}\n"), "");
  EXPECT_NE(ErrorOf("temperature = \n"), "");
  EXPECT_NE(ErrorOf("output = \"x\"\n"), "");
}

TEST_F(ConfigFileTest, AFileCutAnywhereIsReadOrRefused) {
  const std::string text = "temperature = 0.5 # c\nstop = [\"a\", 'b\\x']\n[batch]\nseed = 1_000\n\"top-k\" = 0x1F\n";
  int num_refused = 0;
  for (size_t length = 0; length <= text.size(); ++length) {
    settings_ = Settings();
    settings_.command = Command::kBatch;
    const std::string error = ErrorOf(text.substr(0, length));
    num_refused += error.empty() ? 0 : 1;
    // A file that ends with a line is whole.
    if (length == 0 || text[length - 1] == '\n') {
      EXPECT_EQ(error, "") << length;
    }
  }
  EXPECT_GT(num_refused, 0);
}

TEST_F(ConfigFileTest, DeepNestingIsRefused) { EXPECT_NE(ErrorOf("stop = " + std::string(100000, '[')), ""); }

}  // namespace
}  // namespace vllm
