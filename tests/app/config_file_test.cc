#include "app/cli/config_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

class ConfigFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("vllmcli_config_" + std::to_string(::getpid()) + ".toml");
    settings_.command = Command::kBatch;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void Read(std::string_view text) {
    std::ofstream(path_) << text;
    ReadConfigFile(path_.string(), settings_);
  }
  std::string ErrorOf(std::string_view text) {
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

TEST_F(ConfigFileTest, KeysAreLongFlagNames) {
  Read("temperature = 0.5\nmax_num_seqs = 7\nstop = [\"a\", \"b\"]\nignore-eos = true\nstop-token-ids = [1, 2]\n");
  EXPECT_EQ(settings_.Number("temperature"), 0.5);
  EXPECT_EQ(settings_.Integer("max-num-seqs"), 7);
  EXPECT_EQ(settings_.Texts("stop"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(settings_.Switch("ignore-eos"));
  EXPECT_EQ(settings_.Ids("stop-token-ids"), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(settings_.SourceOf("temperature"), SettingSource::kConfigFile);
}

TEST_F(ConfigFileTest, ATableAppliesOnlyToItsCommand) {
  Read("max-tokens = 1\n[batch]\nmax-tokens = 2\n[run]\nmax-tokens = 3\n");
  EXPECT_EQ(settings_.Integer("max-tokens"), 2);
}

TEST_F(ConfigFileTest, FlagsOverrideTheFile) {
  settings_.Set(*FindFlag("max-tokens"), {"9"}, SettingSource::kCommandLine, "--max-tokens");
  Read("max-tokens = 1\n");
  EXPECT_EQ(settings_.Integer("max-tokens"), 9);
}

TEST_F(ConfigFileTest, AnUnknownKeyIsAnErrorThatSuggestsTheNearestName) {
  EXPECT_EQ(ErrorOf("temprature = 1\n"), ":1:1: temprature: unknown key; did you mean temperature?");
  EXPECT_EQ(ErrorOf("[run]\ntopp = 1\n"), ":2:1: [run] topp: unknown key; did you mean top-p?");
  EXPECT_EQ(ErrorOf("[rnu]\n"), ":1:1: [rnu]: unknown command");
}

TEST_F(ConfigFileTest, InvalidSettingsAreErrors) {
  EXPECT_EQ(ErrorOf("max-tokens = \"x\"\n"), ":1:1: max-tokens: must be a whole number (x)");
  EXPECT_EQ(ErrorOf("temperature = nan\n"), ":1:1: temperature: must be a finite number (nan)");
  EXPECT_EQ(ErrorOf("temperature = [1]\n"), ":1:1: temperature: must be a single value, not an array");
  EXPECT_NE(ErrorOf("temperature = {a = 1}\n"), "");
  EXPECT_NE(ErrorOf("temperature = \n"), "");
  EXPECT_NE(ErrorOf("output = \"x\"\n"), "");
}

TEST_F(ConfigFileTest, AFileTruncatedAnywhereIsReadOrRejected) {
  const std::string text = "temperature = 0.5 # c\nstop = [\"a\", 'b\\x']\n[batch]\nseed = 1_000\n\"top-k\" = 0x1F\n";
  int num_rejected = 0;
  for (size_t length = 0; length <= text.size(); ++length) {
    settings_ = Settings();
    settings_.command = Command::kBatch;
    const std::string error = ErrorOf(text.substr(0, length));
    num_rejected += error.empty() ? 0 : 1;
    // An empty file and a file cut after a line break are valid.
    if (length == 0 || text[length - 1] == '\n') {
      EXPECT_EQ(error, "") << length;
    }
  }
  EXPECT_GT(num_rejected, 0);
}

TEST_F(ConfigFileTest, DeepNestingIsRejected) {
  EXPECT_EQ(ErrorOf("stop = " + std::string(100000, '[')), ":1:9: nested arrays are not supported");
  EXPECT_EQ(ErrorOf("stop = " + std::string(100000, '{')), ":1:8: inline tables are not supported");
  std::string key = "a";
  for (int i = 0; i < 100000; ++i) key += ".a";
  EXPECT_EQ(ErrorOf("\n " + key + " = 1\n"), ":2:5: the key has too many parts (limit 2)");
  EXPECT_EQ(ErrorOf("[" + key + "]\n"), ":1:3: nested tables are not supported");
  EXPECT_EQ(ErrorOf(std::string(100000, '[')), ":1:1: arrays of tables are not supported");
  EXPECT_EQ(ErrorOf(std::string(100000, 'k') + " = 1"), ":1:100001: the key is too long (limit 1000 bytes)");
}

std::string Repeated(std::string_view unit, size_t num_bytes) {
  std::string text;
  while (text.size() + unit.size() <= num_bytes) text += unit;
  return text;
}

// The test measures no time. Each case takes at most a second, but a reader that needs quadratic time would exceed the
// CTest timeout.
TEST_F(ConfigFileTest, AMegabyteOfInputDoesNotTakeQuadraticTime) {
#if defined(__SANITIZE_THREAD__)
  constexpr size_t kBytes = 100'000;  // ThreadSanitizer makes this about 20 times slower
#else
  constexpr size_t kBytes = 1'000'000;
#endif
  Read("stop = [" + Repeated("\"a\", ", kBytes) + "]\n");
  EXPECT_EQ(settings_.Texts("stop").size(), kBytes / 5);
  Read("stop = [" + Repeated("'a', # c\n", kBytes) + "]\n");
  Read("[run]\nstop-token-ids = [" + Repeated("1,", kBytes) + "]\n");
  const std::string long_string = "\"\"\"" + Repeated("\\u0041 \\\n  ", 60'000) + "\"\"\", ";
  Read("[run]\nstop = [" + Repeated(long_string, kBytes) + "]\n");
  Read("[run]\nsystem = '" + Repeated("x", 65'000) + "'\n");
  Read(Repeated("# comment\n", kBytes));
  Read(Repeated(" ", kBytes) + "seed = 1\n");
  Read(Repeated("\r\n", kBytes) + "seed = 1\n");
  std::string tables;
  for (int i = 0; tables.size() < kBytes; ++i) tables += "[t" + std::to_string(i) + "]\nseed = 1\n";
  EXPECT_EQ(ErrorOf(tables), ":1:1: [t0]: unknown command");
  std::string keys;
  for (int i = 0; keys.size() < kBytes; ++i) keys += "k" + std::to_string(i) + " = 1\n";
  EXPECT_EQ(ErrorOf(keys), ":1:1: k0: unknown key");
}

TEST_F(ConfigFileTest, AValueLongerThanItsLimitIsRejected) {
  const std::string text(100'000, '1');
  EXPECT_EQ(ErrorOf("[run]\nsystem = '" + text + "'\n"), ":2:10: the string is too long (limit 65536 bytes)");
  EXPECT_EQ(ErrorOf("[run]\nsystem = \"\"\"" + text + "\"\"\"\n"), ":2:10: the string is too long (limit 65536 bytes)");
  const std::string error = ErrorOf("seed = " + text + "\n");
  EXPECT_TRUE(error.starts_with(":1:8: the value is too long (limit 64 bytes): 111")) << error;
}

TEST_F(ConfigFileTest, AFileLargerThanAMebibyteIsRejected) {
  std::ofstream(path_) << Repeated("'a', ", 10'000'000);
  std::string message;
  try {
    ReadConfigFile(path_.string(), settings_);
  } catch (const ConfigError& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "configuration file " + path_.string() + ": too large (10000000 bytes, limit 1048576)");
}

TEST_F(ConfigFileTest, ADottedKeyNamesItsTable) {
  Read("batch.max-tokens = 2\n\"run\".seed = 1\n");
  EXPECT_EQ(settings_.Integer("max-tokens"), 2);
  EXPECT_FALSE(settings_.Has("seed"));
}

TEST_F(ConfigFileTest, StringsOfEveryKindAreRead) {
  const auto system = [this](std::string_view value) {
    settings_ = Settings();
    settings_.command = Command::kRun;
    Read("system = " + std::string(value) + " # end\n");
    return settings_.Text("system").value_or("none");
  };
  EXPECT_EQ(system(R"("a\tb\"\\\u00e9\U0001F600")"), "a\tb\"\\\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(system(R"('a\t')"), "a\\t");
  EXPECT_EQ(system("\"\"\"\none\n\ttwo\\\n   three\"\"\"\""), "one\n\ttwothree\"");
  EXPECT_EQ(system("'''\r\none\r\n'two''''"), "one\n'two'");
  EXPECT_EQ(system("\"\""), "");
}

TEST_F(ConfigFileTest, NumbersOfEveryKindAreRead) {
  Read("seed = 0x1F\nmax-tokens = 1_000\ntemperature = +1.5e-1\nmin-tokens = 0b11\ntop-k = 0o17\n");
  EXPECT_EQ(settings_.Unsigned("seed"), 31u);
  EXPECT_EQ(settings_.Integer("max-tokens"), 1000);
  EXPECT_EQ(settings_.Number("temperature"), 0.15);
  EXPECT_EQ(settings_.Integer("min-tokens"), 3);
  EXPECT_EQ(settings_.Integer("top-k"), 15);
}

TEST_F(ConfigFileTest, TheLimitsOf64BitIntegersAreReadAndLargerNumbersAreErrors) {
  const auto value_of = [&](const std::string& number) {
    settings_ = Settings();
    settings_.command = Command::kBatch;
    const std::string error = ErrorOf("max-num-seqs = " + number + "\n");
    return error.empty() ? std::to_string(settings_.Integer("max-num-seqs").value()) : error;
  };
  const std::string max = "9223372036854775807";
  const std::string min = "-9223372036854775808";
  for (const char* number :
       {"9223372036854775807", "+9_223_372_036_854_775_807", "0x7FFFFFFFFFFFFFFF", "0o777777777777777777777"}) {
    EXPECT_EQ(value_of(number), max) << number;
  }
  EXPECT_EQ(value_of(min), min);
  for (const char* number : {"9223372036854775808", "-9223372036854775809", "99999999999999999999"}) {
    EXPECT_NE(value_of(number).find("the number is out of range"), std::string::npos) << value_of(number);
  }
}

TEST_F(ConfigFileTest, SyntaxErrorsNameTheirLineAndColumn) {
  const std::string kind = "must be a quoted string, a number, true, false or an array of these";
  const std::vector<std::pair<std::string_view, std::string>> cases = {
      {"seed = 1\nseed = 2\n", ":2:1: key seed is defined twice"},
      {"[run]\n[run]\n", ":2:1: table run is defined twice"},
      {"seed = 1 2\n", ":1:10: unexpected text at the end of the line"},
      {"\n\nseed 1\n", ":3:6: missing = after key seed"},
      {"= 1\n", ":1:1: missing key"},
      {"seed =\n", ":1:7: missing value"},
      {"stop = ['\xC3\xA9', 01]\n", ":1:14: " + kind + " (01: bad integer: leading zero)"},
      {"seed = 2020-01-01\n", ":1:8: " + kind + " (2020-01-01: dates and times are not supported)"},
      {"seed = 1__0\n", ":1:8: " + kind + " (1__0: bad integer: `_` should be surrounded by digits)"},
      {"seed = tru\n", ":1:8: " + kind + " (tru: not a TOML value)"},
      {"seed = 99999999999999999999\n", ":1:8: " + kind + " (99999999999999999999: the number is out of range)"},
      {"seed = 0xFFFFFFFFFFFFFFFFFF\n", ":1:8: " + kind + " (0xFFFFFFFFFFFFFFFFFF: the number is out of range)"},
      {"temperature = 1e999\n", ":1:15: " + kind + " (1e999: the number is out of range)"},
      {"stop = ['a' 'b']\n", ":1:13: missing , or ] in an array"},
      {"stop = ['a',\n\n", ":1:8: unterminated array"},
      {"stop = [,]\n", ":1:9: missing value before a comma"},
      {"system = 'a\n'\n", ":1:10: unterminated string, or one that contains a control character"},
      {"system = \"\"\"a\n", ":1:10: unterminated string"},
      {"system = \"\\q\"\n", ":1:11: unknown escape sequence"},
      {"system = \"\"\"a\\\rb\"\"\"\n", ":1:14: unknown escape sequence"},
      {"system = \"\\ud800\"\n", ":1:10: invalid string: codepoints in the range [0xD800, 0xDFFF] are not valid UTF-8"},
      {"system = \"\\u12\"\n", ":1:10: invalid string: the next token is not a valid string"},
      {"# \x01\n", ":1:3: control character in a comment"},
      {"\"a\\nb\" = 1\n", ":1:1: a\\x0ab: unknown key"},
      {"[run\n", ":1:5: missing ] after the table name"},
      {"seed = \xFF\n", ": not valid UTF-8"},  // no position: the whole text is checked before it is parsed
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(ErrorOf(text), error) << text;
}

TEST_F(ConfigFileTest, AFifoIsRejectedWithoutBlocking) {
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  std::string message;
  try {
    ReadConfigFile(path_.string(), settings_);
  } catch (const ConfigError& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "configuration file " + path_.string() + ": not a regular file (a FIFO)");
}

}  // namespace
}  // namespace vllm::app
