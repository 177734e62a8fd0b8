#include "app/cli/command_line.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

CommandLine Parse(std::vector<std::string> words) { return ParseCommandLine(std::move(words), Command::kRun); }

std::string ErrorOf(std::vector<std::string> words) {
  try {
    Parse(std::move(words));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(CommandLineTest, WordsAndFlagsMayBeMixed) {
  const CommandLine line = Parse({"run", "tell", "-t", "0", "me", "--max-tokens=5", "more", "--stats"});
  EXPECT_EQ(line.settings.command, Command::kRun);
  EXPECT_EQ(line.settings.arguments, (std::vector<std::string>{"tell", "me", "more"}));
  EXPECT_EQ(line.settings.Number("temperature"), 0.0);
  EXPECT_EQ(line.settings.Integer("max-tokens"), 5);
  EXPECT_TRUE(line.settings.Switch("stats"));
}

TEST(CommandLineTest, TheDefaultCommandIsUsedIfNoneIsGiven) {
  EXPECT_EQ(Parse({}).settings.command, Command::kRun);
  EXPECT_EQ(Parse({"-n", "3"}).settings.Integer("max-tokens"), 3);
}

TEST(CommandLineTest, APromptMayContainCommandNames) {
  EXPECT_EQ(Parse({"run", "chat", "batch", "run"}).settings.arguments,
            (std::vector<std::string>{"chat", "batch", "run"}));
}

TEST(CommandLineTest, WordsInBracketsAreNotSplit) {
  EXPECT_EQ(Parse({"run", "[a,b]"}).settings.arguments, (std::vector<std::string>{"[a,b]"}));
  EXPECT_EQ(Parse({"run", "--stop", "[x,y]", "p"}).settings.Texts("stop"), (std::vector<std::string>{"[x,y]"}));
  EXPECT_EQ(Parse({"run", "{}", "[]"}).settings.arguments, (std::vector<std::string>{"{}", "[]"}));
}

TEST(CommandLineTest, AnEmptyPromptIsAnArgument) {
  EXPECT_EQ(Parse({"complete", ""}).settings.arguments, (std::vector<std::string>{""}));
}

TEST(CommandLineTest, WordsAfterADoubleDashAreArguments) {
  EXPECT_EQ(Parse({"run", "--", "--stats", "-tp"}).settings.arguments, (std::vector<std::string>{"--stats", "-tp"}));
}

TEST(CommandLineTest, TpIsTensorParallelSizeAndNotTemperature) {
  const CommandLine line = Parse({"run", "-tp", "2", "x"});
  EXPECT_EQ(line.settings.Integer("tensor-parallel-size"), 2);
  EXPECT_FALSE(line.settings.Has("temperature"));
}

TEST(CommandLineTest, DpIsDataParallelSize) {
  EXPECT_EQ(Parse({"batch", "-dp", "3", "x"}).settings.Integer("data-parallel-size"), 3);
  EXPECT_EQ(Parse({"run", "--", "-dp"}).settings.arguments, (std::vector<std::string>{"-dp"}));
}

TEST(CommandLineTest, NegatableSwitchesHaveBothForms) {
  EXPECT_TRUE(Parse({"run", "x"}).settings.Switch("enable-prefix-caching"));
  EXPECT_FALSE(Parse({"run", "--no-enable-prefix-caching", "x"}).settings.Switch("enable-prefix-caching"));
  EXPECT_TRUE(
      Parse({"run", "--no-enable-prefix-caching", "--enable-prefix-caching"}).settings.Switch("enable-prefix-caching"));
}

TEST(CommandLineTest, RepeatedListFlagsAccumulateAndOthersKeepTheLastValue) {
  const CommandLine line = Parse({"run", "--stop", "a", "--stop", "b", "-t", "1", "-t", "0.5", "--stop-token-ids",
                                  "1,2", "--stop-token-ids", "3", "--logit-bias", "5=-1"});
  EXPECT_EQ(line.settings.Texts("stop"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(line.settings.Number("temperature"), 0.5);
  EXPECT_EQ(line.settings.Ids("stop-token-ids"), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(line.settings.Biases("logit-bias").size(), 1u);
}

TEST(CommandLineTest, NegativeNumbersAreValuesAndNotFlags) {
  EXPECT_EQ(Parse({"run", "--presence-penalty", "-1.5"}).settings.Number("presence-penalty"), -1.5);
  EXPECT_EQ(Parse({"run", "--logprobs", "-1"}).settings.Integer("logprobs"), -1);
}

TEST(CommandLineTest, ErrorsNameTheWordAndSuggestTheNearestName) {
  EXPECT_EQ(ErrorOf({"run", "--temprature", "1"}), "unknown flag --temprature for run; did you mean --temperature?");
  EXPECT_EQ(ErrorOf({"rnu"}), "unknown command rnu; did you mean run?");
  EXPECT_EQ(ErrorOf({"run", "--top-p", "x"}), "--top-p: must be a number (x)");
  EXPECT_EQ(ErrorOf({"run", "--dtype", "int3"}), "--dtype: must be one of auto|float32|float16|bfloat16 (int3)");
  EXPECT_EQ(ErrorOf({"run", "--ordered"}), "unknown flag --ordered for run; it is a flag of another command");
  EXPECT_NE(ErrorOf({"run", "--top-p"}), "");
  EXPECT_NE(ErrorOf({"fetch", "x"}), "");
}

// Returns the hint of the error.
std::string HintOf(std::vector<std::string> words) {
  try {
    Parse(std::move(words));
  } catch (const ConfigError& error) {
    return error.hint();
  }
  return "";
}

TEST(CommandLineTest, ErrorsHaveAHint) {
  EXPECT_EQ(HintOf({"run", "--temprature", "1"}), "vllmcli run --help-all lists all flags");
  EXPECT_EQ(HintOf({"run", "--ordered"}), "--ordered is a flag of batch");
  EXPECT_EQ(HintOf({"run", "-o", "x"}), "-o is a flag of batch, embed");
  EXPECT_EQ(HintOf({"run", "-y"}),
            "put -- before a text that begins with a dash; vllmcli run --help-all lists all flags");
  EXPECT_EQ(HintOf({"rnu"}), "vllmcli --help lists the commands");
  EXPECT_EQ(HintOf({"Why is the sky blue?"}), "vllmcli run 'TEXT' answers a prompt");
  EXPECT_EQ(HintOf({"./model.gguf"}), "vllmcli chat -m MODEL chats with a model");
  EXPECT_EQ(HintOf({"run", "--top-p"}), "vllmcli run --help explains the flags");
}

TEST(CommandLineTest, HelpForAnUnknownCommandIsAnError) {
  EXPECT_EQ(ErrorOf({"help", "rnu"}), "unknown command rnu; did you mean run?");
  EXPECT_EQ(ErrorOf({"--help", "nosuch"}), "unknown command nosuch");
  const CommandLine line = Parse({"help", "run"});
  EXPECT_EQ(line.action, CommandLineAction::kHelp);
  EXPECT_TRUE(line.has_command);
  EXPECT_EQ(line.settings.command, Command::kRun);
  EXPECT_EQ(Parse({"help"}).has_command, false);
}

TEST(CommandLineTest, HelpAllAndVersionWorkAfterACommand) {
  EXPECT_EQ(Parse({"--help-all"}).action, CommandLineAction::kHelpAll);
  EXPECT_FALSE(Parse({"--help-all"}).has_command);
  EXPECT_EQ(Parse({"help", "run", "--help-all"}).action, CommandLineAction::kHelpAll);
  for (const CommandInfo& info : CommandTable()) {
    const std::string name(info.name);
    EXPECT_EQ(Parse({name, "--help-all"}).action, CommandLineAction::kHelpAll) << name;
    EXPECT_EQ(Parse({name, "--help", "--help-all"}).action, CommandLineAction::kHelpAll) << name;
    EXPECT_EQ(Parse({name, "-h"}).action, CommandLineAction::kHelp) << name;
    EXPECT_EQ(Parse({name, "-V"}).action, CommandLineAction::kVersion) << name;
    EXPECT_TRUE(Parse({name, "--quiet"}).settings.Switch("quiet")) << name;
  }
}

TEST(CommandLineTest, HelpAndVersionAreActions) {
  EXPECT_EQ(Parse({"--version"}).action, CommandLineAction::kVersion);
  EXPECT_EQ(Parse({"-V"}).action, CommandLineAction::kVersion);
  EXPECT_EQ(Parse({"--help"}).action, CommandLineAction::kHelp);
  const CommandLine line = Parse({"batch", "--help"});
  EXPECT_EQ(line.action, CommandLineAction::kHelp);
  EXPECT_TRUE(line.has_command);
  EXPECT_EQ(line.settings.command, Command::kBatch);
}

TEST(FlagTableTest, NamesAreUniqueInEachCommandAndHelpIsNotEmpty) {
  for (const CommandInfo& info : CommandTable()) {
    std::string shorts;
    std::set<std::string_view> names;
    for (const Flag& flag : FlagTable()) {
      if (!flag.belongs_to(info.command)) continue;
      if (flag.short_name != 0) {
        EXPECT_EQ(shorts.find(flag.short_name), std::string::npos) << flag.name;
        shorts += flag.short_name;
      }
      EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
      EXPECT_FALSE(flag.help.empty()) << flag.name;
    }
  }
}

TEST(FlagTableTest, EveryFlagExceptHelpIsAcceptedByItsCommands) {
  for (const Flag& flag : FlagTable()) {
    for (const CommandInfo& info : CommandTable()) {
      if (!flag.belongs_to(info.command) || flag.name == "help") continue;
      std::vector<std::string> words = {std::string(info.name), "--" + std::string(flag.name)};
      if (flag.kind == ValueKind::kChoice) {
        words.emplace_back(flag.choices.substr(0, flag.choices.find('|')));
      } else if (flag.kind == ValueKind::kBias) {
        words.emplace_back("1=2");
      } else if (flag.takes_value()) {
        words.emplace_back("1");
      }
      EXPECT_TRUE(Parse(words).settings.Has(flag.name)) << info.name << " " << flag.name;
    }
  }
}

}  // namespace
}  // namespace vllm::app
