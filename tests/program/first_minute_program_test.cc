// Tests what a new user sees first: the first lines of the chat, --quiet, /set, `run -` and the examples in the help.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/docs/help.h"
#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

const std::map<std::string, std::string>& NoHistory() {
  static const std::map<std::string, std::string> environment = {{"XDG_STATE_HOME", "/dev/null"}};
  return environment;
}

TEST(FirstMinuteTest, TheFirstScreenSaysThatTheGuideIsATinyHelpModel) {
  PtyProgram chat({}, NoHistory());
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  const std::string screen = chat.output();
  EXPECT_NE(screen.find("tiny help model trained for vllmcli"), std::string::npos) << screen;
  EXPECT_NE(screen.find("vllmcli chat -m FILE.gguf"), std::string::npos) << screen;
  EXPECT_NE(screen.find("Ctrl-D or /exit quits"), std::string::npos) << screen;
  EXPECT_NE(screen.find("Alt-Enter begins a new line"), std::string::npos) << screen;
  EXPECT_NE(screen.find("/help lists the commands"), std::string::npos) << screen;
  EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 4) << screen;
}

TEST(FirstMinuteTest, WithAPresetTheFirstScreenHasAtMostFourLines) {
  PtyProgram chat({"chat", "--preset", "translate", "--no-save"}, NoHistory());
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  const std::string screen = chat.output();
  EXPECT_NE(screen.find("[preset translate: translate text"), std::string::npos) << screen;
  EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 4) << screen;
}

TEST(FirstMinuteTest, WithAModelFlagTheFirstScreenNamesTheModelAndItsContext) {
  PtyProgram chat({"-m", GuideModel(), "--max-model-len", "256"}, NoHistory());
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  EXPECT_NE(chat.output().find("guide_model, context 256 tokens"), std::string::npos) << chat.output();
  EXPECT_EQ(chat.output().find("tiny help model"), std::string::npos) << chat.output();
}

TEST(FirstMinuteTest, QuietHidesTheFirstScreenButNotRepliesToCommands) {
  PtyProgram chat({"--quiet"}, NoHistory());
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  EXPECT_EQ(chat.output().find("/help"), std::string::npos) << chat.output();
  chat.Send("/help\r");
  EXPECT_TRUE(chat.WaitFor("list these commands")) << chat.output();
}

TEST(FirstMinuteTest, SetShowsOneSettingAndItsSource) {
  const ProgramResult chat =
      RunProgram({"chat", "-t", "0.5"}, Input("/set temperature\n/set top_p 0.7\n/set top-p\n/set tempreature\n"));
  EXPECT_EQ(chat.status, 0);
  EXPECT_NE(chat.err.find("temperature                 0.5       (command line)"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("top-p                       0.7       (/set)"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("did you mean temperature?"), std::string::npos) << chat.err;
}

TEST(FirstMinuteTest, ADashMeansStandardInput) {
  const std::vector<std::string> common = {"run", "--json"};
  const auto outputs = [&](std::vector<std::string> words, const std::string& input) {
    words.insert(words.begin(), common.begin(), common.end());
    const ProgramResult result = RunProgram(words, Input(input));
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out)["outputs"];
  };
  const nlohmann::json expected = outputs({"What is vllmcli?"}, "");
  EXPECT_EQ(outputs({"-"}, "What is vllmcli?\n"), expected);
  EXPECT_EQ(outputs({"-", "is vllmcli?"}, "What\n"), outputs({"What\nis vllmcli?"}, ""));
  EXPECT_EQ(RunProgram({"run", "-"}, Input("")).status, 2);
}

TEST(FirstMinuteTest, ADashReadsStandardInputFromATerminal) {
  PtyProgram run({"run", "-"});
  run.Send("What is vllmcli?\n\x04");
  EXPECT_EQ(run.WaitForExit(), 0) << run.output();
}

TEST(FirstMinuteTest, TokenizeAndImportReadStandardInputForADash) {
  const ProgramResult piped = RunProgram({"tokenize"}, Input("Hello"));
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(RunProgram({"tokenize", "-"}, Input("Hello")).out, piped.out);
  const TempDirectory temp;
  ProgramOptions options =
      Input(R"([{"title":"T","current_node":"a","mapping":{"a":{"id":"a","parent":null,"children":[],
      "message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Hello"]}}}}}])");
  options.environment = {{"XDG_DATA_HOME", temp.path()}};
  const ProgramResult import = RunProgram({"chats", "import", "-", "--quiet"}, options);
  EXPECT_EQ(import.status, 0) << import.err;
  EXPECT_EQ(import.err, "");
  EXPECT_NE(RunProgram({"chats", "show", "1"}, options).out.find("Hello"), std::string::npos);
}

// Returns the first two lines on standard error.
std::string ErrorOf(const std::vector<std::string>& arguments, int status, const std::string& data_home = "") {
  ProgramOptions options = Input("");
  options.environment = {{"XDG_DATA_HOME", data_home}};
  const ProgramResult result = RunProgram(arguments, options);
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 2) << result.err;
  return result.err;
}

TEST(FirstMinuteTest, TheFirstErrorsOfABeginnerHaveAHint) {
  const TempDirectory temp;
  const std::string plain = CopyGuideModel(temp.path() + "/plain", {.keeps_chat_template = false});
  const std::string models =
      "hint: vllmcli models lists the installed models; -m also takes a .gguf file or a Hugging "
      "Face model directory\n";
  EXPECT_NE(ErrorOf({"run", "-m", "nosuch", "x"}, 3).find(models), std::string::npos);
  EXPECT_EQ(ErrorOf({"run", "-m", "./nosuch/x", "x"}, 3),
            "vllmcli: model ./nosuch/x: no such file or directory\n" + models);
  EXPECT_EQ(ErrorOf({"run", "-m", plain, "x"}, 3),
            "vllmcli: model " + plain +
                ": has no chat template\nhint: vllmcli complete continues text without one; "
                "--chat-template FILE sets one\n");
  EXPECT_EQ(ErrorOf({"help", "rnu"}, 2),
            "vllmcli: unknown command rnu; did you mean run?\nhint: vllmcli --help lists the commands\n");
  EXPECT_EQ(
      ErrorOf({"run", "--temprature", "1"}, 2),
      "vllmcli: unknown flag --temprature for run; did you mean --temperature?\nhint: vllmcli run --help-all lists "
      "all flags\n");
  EXPECT_EQ(
      ErrorOf({"run"}, 2),
      "vllmcli: no prompt; pass one as an argument or on standard input\nhint: vllmcli run 'TEXT', or: vllmcli run "
      "- <FILE\n");
  EXPECT_EQ(ErrorOf({"batch", "nosuch.txt"}, 3),
            "vllmcli: batch input nosuch.txt: No such file or directory\nhint: the name - reads the rows from standard "
            "input\n");
  EXPECT_EQ(
      ErrorOf({"chats", "show", "1"}, 1, temp.path()),
      "vllmcli: chats: there are no stored conversations (" + temp.path() +
          "/vllmcli/chats.db does not exist)\nhint: vllmcli chat stores conversations, unless --no-save is set\n");
}

TEST(FirstMinuteTest, HelpShowsTenFlagsFirstAndExamplesLastAndHelpAllShowsEveryFlag) {
  std::vector<std::optional<Command>> commands = {std::nullopt};
  for (const CommandInfo& info : CommandTable()) commands.emplace_back(info.command);
  for (const std::optional<Command>& command : commands) {
    const std::string first = HelpText(command, HelpDetail::kFirst);
    const std::string all = HelpText(command, HelpDetail::kAll);
    int num_first = 0;
    for (const Flag& flag : FlagTable()) {
      const std::string usage = "  " + FlagUsage(flag);
      const bool has_flag = !command || flag.belongs_to(*command);
      // A flag of another command may have the name of one of this command.
      const auto has_name = [&](const Flag& other) { return other.name == flag.name && other.belongs_to(*command); };
      if (!has_flag && std::any_of(FlagTable().begin(), FlagTable().end(), has_name)) continue;
      const bool is_listed = all.find(usage + " ") != std::string::npos || all.find(usage + "\n") != std::string::npos;
      EXPECT_EQ(is_listed, has_flag) << flag.name;
      num_first += flag.group != FlagGroup::kGeneral && first.find(usage) != std::string::npos ? 1 : 0;
    }
    EXPECT_LE(num_first, 12) << first;
    const size_t examples = first.find("\nExamples:\n");
    const bool has_examples = !command || !CommandInfoOf(*command).examples.empty();
    ASSERT_EQ(examples != std::string::npos, has_examples) << first;
    if (has_examples) {
      EXPECT_EQ(first.find("\n\n", examples + 1), std::string::npos) << first;
    }
  }
}

TEST(FirstMinuteTest, TheMainCommandsHaveExamplesInTheirHelp) {
  EXPECT_NE(HelpText(std::nullopt, HelpDetail::kFirst).find("\nExamples:\n"), std::string::npos);
  for (const Command command : {Command::kChat, Command::kRun, Command::kComplete, Command::kBatch, Command::kBench}) {
    const std::string help = HelpText(command, HelpDetail::kFirst);
    const size_t first_example = help.find("\nExamples:\n  vllmcli ");
    const size_t title = help.find("\nExamples:\n");
    EXPECT_NE(title, std::string::npos) << help;
    EXPECT_NE(first_example, std::string::npos) << help;
  }
}

}  // namespace
}  // namespace vllm::app
