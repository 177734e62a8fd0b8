// Tests what a new user sees first: the first lines of the chat, --quiet, /set, `run -` and the examples in the help.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/docs/help.h"
#include "tests/program/program.h"

namespace vllm::app {
namespace {

const std::map<std::string, std::string>& NoHistory() {
  static const std::map<std::string, std::string> environment = {{"XDG_STATE_HOME", "/nonexistent"}};
  return environment;
}

TEST(FirstMinuteTest, TheFirstScreenSaysThatTheGuideIsATinyHelpModel) {
  PtyProgram chat({}, NoHistory());
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  const std::string screen = chat.output();
  EXPECT_NE(screen.find("tiny help model trained for vllmcli"), std::string::npos) << screen;
  EXPECT_NE(screen.find("vllmcli chat -m FILE.gguf"), std::string::npos) << screen;
  EXPECT_NE(screen.find("Ctrl-D or /exit quits"), std::string::npos) << screen;
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

TEST(FirstMinuteTest, TheMainCommandsHaveExamplesInTheirHelp) {
  EXPECT_NE(HelpText(std::nullopt).find("\nExamples:\n"), std::string::npos);
  for (const Command command : {Command::kChat, Command::kRun, Command::kComplete, Command::kBatch, Command::kBench}) {
    const std::string help = HelpText(command);
    const size_t first_example = help.find("\nExamples:\n  vllmcli ");
    const size_t title = help.find("\nExamples:\n");
    EXPECT_NE(title, std::string::npos) << help;
    EXPECT_NE(first_example, std::string::npos) << help;
  }
}

}  // namespace
}  // namespace vllm::app
