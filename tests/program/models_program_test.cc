// Tests `vllmcli models` and names of models, with models in a temporary Hugging Face cache.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string ContentsOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class ModelsProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.environment = {{"HF_HUB_CACHE", root() + "/hub"},
                            {"XDG_DATA_HOME", root() + "/data"},
                            {"XDG_CONFIG_HOME", root() + "/config"},
                            {"XDG_STATE_HOME", root() + "/state"},
                            {"XDG_CACHE_HOME", root() + "/cache"}};
    fs::create_directories(repository() + "/blobs");
    fs::create_directories(repository() + "/snapshots/0123");
    const std::string gguf = std::string(VLLMCLI_TEST_DATA) + "/gguf/llama/model.gguf";
    for (const std::string tag : {"Q4_0", "Q8_0"}) {
      fs::copy_file(gguf, repository() + "/blobs/" + tag);
      fs::create_symlink("../../blobs/" + tag, repository() + "/snapshots/0123/tiny-" + tag + ".gguf");
    }
  }

  const std::string& root() const { return directory_.path(); }
  std::string repository() const { return root() + "/hub/models--me--tiny-GGUF"; }
  std::string config() const { return root() + "/config/vllmcli/config.toml"; }

  ProgramResult Models(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "models");
    return RunProgram(arguments, options_);
  }
  Json Listed(const std::string& name) const {
    for (const Json& model : Json::parse(Models({"--json"}).out)) {
      if (model["name"] == name) return model;
    }
    return Json();
  }
  // Returns the name of the default model in the list, or "".
  std::string Default() const {
    for (const Json& model : Json::parse(Models({"--json"}).out)) {
      if (model["is_default"]) return model["name"];
    }
    return "";
  }

  TempDirectory directory_;
  ProgramOptions options_;
};

TEST_F(ModelsProgramTest, TheListHasNameSizeTypeAndLastUse) {
  const ProgramResult before = Models({});
  EXPECT_EQ(before.status, 0);
  EXPECT_NE(before.out.find("  NAME                  SIZE  TYPE"), std::string::npos) << before.out;
  EXPECT_NE(before.out.find("\n  me/tiny-GGUF:Q4_0"), std::string::npos) << before.out;
  EXPECT_NE(before.out.find("\n* guide"), std::string::npos) << before.out;
  const Json model = Listed("me/tiny-GGUF:Q4_0");
  EXPECT_EQ(model["type"], "GGUF Q4_0");
  EXPECT_EQ(model["bytes"], fs::file_size(repository() + "/blobs/Q4_0"));
  EXPECT_EQ(model["repository"], "me/tiny-GGUF");
  EXPECT_EQ(model["last_used_ms"], nullptr);
}

TEST_F(ModelsProgramTest, LoadingAModelIsRememberedUnlessNoFileMayBeWritten) {
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"complete", "-m", "me/tiny-GGUF:Q4_0", "-n", "1", "--prompt-ids", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments, options_).status;
  };
  ASSERT_EQ(RunProgram({"run", "-m", "guide", "--ephemeral", "-n", "1", "a"}, options_).status, 0);
  EXPECT_FALSE(fs::exists(root() + "/state"));
  ASSERT_EQ(run({}), 0);
  EXPECT_GT(Listed("me/tiny-GGUF:Q4_0")["last_used_ms"], 0);
  EXPECT_EQ(Listed("me/tiny-GGUF:Q8_0")["last_used_ms"], nullptr);
  ASSERT_EQ(Models({"rm", "me/tiny-GGUF:Q4_0", "--yes"}).status, 0);
  EXPECT_TRUE(fs::is_empty(root() + "/state/vllmcli/last-use"));
}

TEST_F(ModelsProgramTest, RemovingNeedsYesWithoutATerminal) {
  const ProgramResult asks = Models({"rm", "me/tiny-GGUF:Q4_0"});
  EXPECT_EQ(asks.status, 2);
  EXPECT_NE(asks.err.find("needs --yes"), std::string::npos);
  EXPECT_TRUE(fs::exists(repository() + "/blobs/Q4_0"));
  const ProgramResult yes = Models({"rm", "--yes", "me/tiny-GGUF:Q4_0"});
  EXPECT_EQ(yes.status, 0);
  EXPECT_NE(yes.err.find("removed me/tiny-GGUF:Q4_0: 41.0 kB freed"), std::string::npos) << yes.err;
  EXPECT_FALSE(fs::exists(repository() + "/blobs/Q4_0"));
  EXPECT_TRUE(fs::exists(repository() + "/blobs/Q8_0"));
}

TEST_F(ModelsProgramTest, NothingIsRemovedIfOneNameIsWrong) {
  EXPECT_EQ(Models({"rm", "--yes", "me/tiny-GGUF", "me/other"}).status, 3);
  EXPECT_EQ(Models({"rm", "--yes", "me/tiny-GGUF", "guide"}).status, 2);
  EXPECT_TRUE(fs::exists(repository() + "/blobs/Q4_0"));
}

TEST_F(ModelsProgramTest, RemovingAsksOnATerminal) {
  for (const std::string answer : {"\r", "n\r", "y\r"}) {
    PtyProgram program({"models", "rm", "me/tiny-GGUF"}, options_.environment);
    ASSERT_TRUE(program.WaitFor("Remove me/tiny-GGUF (82.0 kB in 2 files)? [y/N] ")) << program.output();
    EXPECT_TRUE(fs::exists(repository()));
    program.Send(answer);
    EXPECT_EQ(program.WaitForExit(), answer == "y\r" ? 0 : 1);
  }
  EXPECT_FALSE(fs::exists(repository()));
}

TEST_F(ModelsProgramTest, UseWritesTheDefaultAndGuideRestoresIt) {
  EXPECT_EQ(Models({"use", "me/tiny-GGUF:Q8_0"}).status, 0);
  EXPECT_EQ(ContentsOf(config()), "model = \"me/tiny-GGUF:Q8_0\"\n");
  EXPECT_EQ(Default(), "me/tiny-GGUF:Q8_0");
  EXPECT_EQ(RunProgram({"complete", "-n", "1", "--json", "--prompt-ids", "1"}, options_).status, 0);
  EXPECT_EQ(Models({"use", "guide"}).status, 0);
  EXPECT_EQ(ContentsOf(config()), "");
  EXPECT_EQ(Default(), "guide");
}

TEST_F(ModelsProgramTest, UseKeepsTheRestOfTheConfigurationFile) {
  fs::create_directories(root() + "/config/vllmcli");
  std::ofstream(config()) << "# mine\ntop-k = 5 # few\nmodel = 'guide' # why\n\n[chat]\nmodel = 'guide'\n";
  const ProgramResult result = Models({"use", "me/tiny-GGUF"});
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.err.find("the table [chat]"), std::string::npos) << result.err;
  EXPECT_EQ(ContentsOf(config()),
            "# mine\ntop-k = 5 # few\nmodel = \"me/tiny-GGUF\" # why\n\n[chat]\nmodel = 'guide'\n");
}

TEST_F(ModelsProgramTest, UseRejectsAnUnknownModelAndABrokenFile) {
  EXPECT_EQ(Models({"use", "nothing"}).status, 3);
  EXPECT_FALSE(fs::exists(config()));
  fs::create_directories(root() + "/config/vllmcli");
  std::ofstream(config()) << "model = \n";
  EXPECT_EQ(Models({"use", "guide"}).status, 2);
  EXPECT_EQ(ContentsOf(config()), "model = \n");
}

TEST_F(ModelsProgramTest, UseOfAPathWritesAnAbsolutePath) {
  const std::string file = fs::relative(repository() + "/blobs/Q8_0").string();
  fs::copy_file(file, root() + "/m.gguf");
  EXPECT_EQ(Models({"use", fs::relative(root() + "/m.gguf").string()}).status, 0);
  EXPECT_EQ(ContentsOf(config()), "model = \"" + root() + "/m.gguf\"\n");
}

TEST_F(ModelsProgramTest, AliasesAreListedUsedAndRemoved) {
  EXPECT_EQ(Models({"alias", "small=me/tiny-GGUF:Q4_0", "tiny=small"}).status, 0);
  EXPECT_EQ(Models({"alias"}).out, "small=me/tiny-GGUF:Q4_0\ntiny=me/tiny-GGUF:Q4_0\n");
  EXPECT_EQ(Json::parse(Models({"alias", "--json"}).out)[0], Json({{"name", "small"}, {"model", "me/tiny-GGUF:Q4_0"}}));
  EXPECT_EQ(Models({"alias", "small"}).out, "me/tiny-GGUF:Q4_0\n");
  EXPECT_EQ(Json::parse(RunProgram({"show", "small", "--json"}, options_).out)["name"], "me/tiny-GGUF:Q4_0");
  EXPECT_EQ(Listed("me/tiny-GGUF:Q4_0")["aliases"], Json({"small", "tiny"}));
  EXPECT_EQ(Models({"alias", "small="}).status, 0);
  EXPECT_EQ(Models({"alias", "small="}).status, 1);
  EXPECT_EQ(Models({"alias", "small"}).status, 1);
  EXPECT_EQ(Models({"alias"}).out, "tiny=me/tiny-GGUF:Q4_0\n");
}

TEST_F(ModelsProgramTest, AnAliasMustNotHideAModelAndMustNameOne) {
  fs::create_directories(root() + "/data/vllmcli/models/mine");
  std::ofstream(root() + "/data/vllmcli/models/mine/config.json") << "{}";
  for (const char* argument :
       {"mine=me/tiny-GGUF", "guide=me/x", "a/b=me/x", "x.gguf=me/x", "a=./no such path", "=me/x"}) {
    EXPECT_EQ(Models({"alias", argument}).status, 2) << argument;
  }
  EXPECT_EQ(Models({"alias"}).out, "");
}

TEST_F(ModelsProgramTest, NamesThatAShellWouldChangeAreNotOffered) {
  ASSERT_EQ(Models({"alias", "small=me/tiny-GGUF"}).status, 0);
  fs::copy_file(repository() + "/blobs/Q4_0", repository() + "/snapshots/0123/a $(touch x).gguf");
  EXPECT_EQ(Models({"--names"}).out, "me/tiny-GGUF:Q4_0\nme/tiny-GGUF:Q8_0\nguide\nsmall\n");
}

TEST_F(ModelsProgramTest, WrongActionsAreUsageErrors) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"remove"}, {"rm"}, {"use"}, {"use", "a", "b"}, {"list", "x"}}) {
    EXPECT_EQ(Models(arguments).status, 2);
  }
}

TEST_F(ModelsProgramTest, AChatUnderstandsTags) {
  const std::string command = "/model me/tiny-GGUF:Q5_K_M\n";
  ProgramOptions options = options_;
  options.input = command;
  const ProgramResult result = RunProgram({"chat", "--no-save"}, options);
  EXPECT_NE(result.err.find("hint: vllmcli pull me/tiny-GGUF:Q5_K_M downloads it"), std::string::npos) << result.err;
}

TEST_F(ModelsProgramTest, PullListsModelsThatRunWell) {
  const Json list = Json::parse(RunProgram({"pull", "--list", "--json"}, options_).out);
  EXPECT_EQ(list.size(), 15u);
  const ProgramResult text = RunProgram({"pull", "--list"}, options_);
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 16);
}

// Types into a real bash that has loaded the completions.
TEST_F(ModelsProgramTest, BashCompletesNamesWithColons) {
  ASSERT_EQ(Models({"alias", "small=me/tiny-GGUF:Q8_0"}).status, 0);
  PtyOptions options;
  options.environment = options_.environment;
  options.environment["PATH"] = fs::path(VLLMCLI_BINARY).parent_path().string() + ":/usr/bin:/bin";
  options.environment["PS1"] = "ready> ";
  options.program = "/bin/bash";
  options.num_columns = 200;
  PtyProgram bash({"--norc", "--noprofile", "-i"}, options);
  ASSERT_TRUE(bash.WaitFor("ready> "));
  bash.Send(std::string("source ") + VLLMCLI_SOURCE_DIR + "/completions/vllmcli.bash; cd " + root() + "\r");
  ASSERT_TRUE(bash.WaitFor("ready> "));
  const auto completed = [&](const std::string& typed, const std::string& expected) {
    bash.Send(typed + "\t");
    const bool is_shown = bash.WaitFor(expected);
    bash.Send("\x01\x0B");  // Ctrl-A, Ctrl-K: clear the line
    return is_shown;
  };
  EXPECT_TRUE(completed("vllmcli run -m me/tiny-GGUF:Q4", "vllmcli run -m me/tiny-GGUF:Q4_0 "));
  EXPECT_TRUE(completed("vllmcli run --model=sm", "vllmcli run --model=small "));
  EXPECT_TRUE(completed("vllmcli models rm sm", "vllmcli models rm small "));
  // A bell rings before the part that both names share.
  EXPECT_TRUE(completed("vllmcli show me/", "tiny-GGUF:Q"));
  EXPECT_TRUE(completed("vllmcli models al", "vllmcli models alias "));
  bash.Send("exit\r");
  bash.WaitForExit();
}

}  // namespace
}  // namespace vllm::app
