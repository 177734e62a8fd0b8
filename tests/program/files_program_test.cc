// Files in prompts: run --file, and @PATH and /file in a chat.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

class FilesProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = GuideModel();
    ASSERT_NE(model_, "");
    environment_ = {{"XDG_STATE_HOME", directory_.path()}, {"XDG_DATA_HOME", directory_.path()}};
  }

  // Returns the number of prompt tokens and the answer's tokens.
  static nlohmann::json Answer(const ProgramResult& result) {
    EXPECT_EQ(result.status, 0) << result.err;
    const nlohmann::json json = nlohmann::json::parse(result.out);
    return {json["prompt_tokens"], json["outputs"][0]["token_ids"]};
  }
  std::vector<std::string> Run(std::vector<std::string> more) const {
    more.insert(more.begin(), {"run", "-m", model_, "-t", "0", "-n", "8", "--ignore-eos", "--json"});
    return more;
  }

  TempDirectory directory_;
  std::string model_;
  std::map<std::string, std::string> environment_;
};

TEST_F(FilesProgramTest, RunAppendsFilesToThePrompt) {
  const std::string one = directory_.Write("one.txt", "first file\n");
  const std::string two = directory_.Write("two.txt", "second");
  const std::string prompt = "compare\n\n" + one + ":\n```\nfirst file\n```\n\n" + two + ":\n```\nsecond\n```";
  EXPECT_EQ(Answer(RunProgram(Run({"-f", one, "--file", two, "compare"}))), Answer(RunProgram(Run({prompt}))));
}

TEST_F(FilesProgramTest, StandardInputCanBeAFile) {
  EXPECT_EQ(Answer(RunProgram(Run({"-f", "-", "why?"}), Input("the log\n"))),
            Answer(RunProgram(Run({"why?\n\nstandard input:\n```\nthe log\n```"}))));
}

TEST_F(FilesProgramTest, RunRejectsUnusableFiles) {
  const std::string binary = directory_.Write("binary", std::string("a\0b", 3));
  ProgramResult result = RunProgram(Run({"-f", binary, "x"}));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("is binary (3 B, NUL at byte 1)"), std::string::npos) << result.err;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "word ";
  result = RunProgram(Run({"-f", directory_.Write("long", text), "x"}));
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("tokens"), std::string::npos) << result.err;
}

TEST_F(FilesProgramTest, ChatSendsFilesAndTellsTheirSizes) {
  const std::string path = directory_.Write("my notes.txt", "alpha beta gamma\n");
  const std::string typed = directory_.path() + "/my\\ notes.txt";
  PtyProgram chat({"chat", "-m", model_, "-t", "0", "-n", "5", "--ignore-eos"}, environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/file " + path + "\r");
  ASSERT_TRUE(chat.WaitFor("tokens; type the message that it belongs to]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("@" + typed)) << chat.output();
  chat.Send("summarize\r");
  ASSERT_TRUE(chat.WaitFor("my notes.txt: ")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("[cut off after 5 tokens")) << chat.output();
  chat.Send("/export " + directory_.path() + "/out.json\r");
  ASSERT_TRUE(chat.WaitForScreen([](const TerminalEmulator& terminal) {
    return terminal.Row(terminal.cursor().row) == ">>>";
  })) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  std::ifstream file(directory_.path() + "/out.json");
  const std::string exported((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(exported.find("my notes.txt summarize\\n\\n" + path + ":\\n```\\nalpha beta gamma\\n```"),
            std::string::npos)
      << exported;
}

TEST_F(FilesProgramTest, ChatReturnsAMessageWhoseFileCannotBeSent) {
  const std::string path = directory_.Write("binary", std::string("a\0b", 3));
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "word ";
  const std::string long_path = directory_.Write("long", text);
  PtyProgram chat({"chat", "-m", model_}, environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("see @" + path + "\r");
  ASSERT_TRUE(chat.WaitFor("is binary")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> see @" + path)) << chat.output();
  chat.Send("\x15@" + long_path + "\r");
  ASSERT_TRUE(chat.WaitFor("tokens do not fit in the context of 1,024 tokens")) << chat.output();
}

TEST_F(FilesProgramTest, TabCompletesCommandsSettingsAndFiles) {
  directory_.Write("notes.txt", "alpha");
  PtyProgram chat({"chat", "-m", model_}, environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/se\t");
  ASSERT_TRUE(chat.WaitFor("/search  search all stored conversations")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("/set     change a sampling setting")) << chat.output();
  chat.Send("\x15/set temp\t");
  ASSERT_TRUE(chat.WaitFor("/set temperature ")) << chat.output();
  chat.Send("\x15see @" + directory_.path() + "/no\t");
  ASSERT_TRUE(chat.WaitFor("notes.txt")) << chat.output();
  chat.Send("\x15/save-code 1 " + directory_.path() + "/no\t");
  ASSERT_TRUE(chat.WaitFor("/save-code 1 " + directory_.path() + "/notes.txt ")) << chat.output();
}

}  // namespace
}  // namespace vllm::app
