// Tests that -m offers to download a model that is not installed. The model is the bundled one, under another name.
#include <algorithm>
#include <filesystem>

#include "tests/hub/pull_test.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using testing_support::StallAfter;

constexpr char kName[] = "me/guide-copy";
constexpr char kQuestion[] = "me/guide-copy is not installed. Download 6.7 MB from 127.0.0.1:";
constexpr char kHint[] = "hint: vllmcli pull me/guide-copy downloads it";

class OfferDownloadTest : public PullTest {
 protected:
  void SetUp() override {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(GuideModel())) {
      if (entry.path().extension() != ".md") files[entry.path().filename().string()] = ReadFile(entry.path());
    }
    repository_ = MakeRepository(kName, files);
    server_.AddRepository(repository_);
    environment().insert({{"XDG_CONFIG_HOME", Path("config")},
                          {"XDG_CACHE_HOME", Path("cache")},
                          {"XDG_DATA_HOME", Path("data")},
                          {"XDG_STATE_HOME", Path("state")}});
  }

  std::vector<std::string> RunArguments() const { return {"run", "-m", kName, "-n", "3", "-t", "0", "hi"}; }
  PtyProgram OnTerminal() { return PtyProgram(RunArguments(), PtyOptions{environment(), "", 24, 200}); }
  ProgramResult WithoutTerminal() {
    ProgramOptions options;
    options.environment = environment();
    return RunProgram(RunArguments(), options);
  }

  HubRepository repository_;
};

TEST_F(OfferDownloadTest, YesDownloadsTheModelAndRunsIt) {
  PtyProgram program = OnTerminal();
  ASSERT_TRUE(program.WaitFor(kQuestion));
  EXPECT_EQ(Downloads(server_), std::vector<std::string>{});
  program.Send("y\r");
  EXPECT_EQ(program.WaitForExit(), 0);
  EXPECT_TRUE(ReadFile(Snapshot(repository_) / "model.safetensors") == *repository_.File("model.safetensors").bytes);
  // The next start needs no server.
  server_.ForgetRequests();
  EXPECT_EQ(WithoutTerminal().status, 0);
  EXPECT_EQ(server_.Requests(), std::vector<std::string>{});
}

TEST_F(OfferDownloadTest, AnEmptyLineIsYes) {
  PtyProgram program = OnTerminal();
  ASSERT_TRUE(program.WaitFor("[Y/n] "));
  program.Send("\r");
  EXPECT_EQ(program.WaitForExit(), 0);
}

TEST_F(OfferDownloadTest, OtherTextIsAskedAgain) {
  PtyProgram program = OnTerminal();
  ASSERT_TRUE(program.WaitFor("[Y/n] "));
  program.Send("what?\r");
  ASSERT_TRUE(program.WaitFor("[Y/n] "));
  program.Send("Yes\r");
  EXPECT_EQ(program.WaitForExit(), 0);
}

TEST_F(OfferDownloadTest, NoDownloadsNothing) {
  for (const std::string keys : {"n\r", "\x04"}) {
    PtyProgram program = OnTerminal();
    ASSERT_TRUE(program.WaitFor("[Y/n] "));
    program.Send(keys);
    EXPECT_EQ(program.WaitForExit(), 3);
    EXPECT_NE(program.output().find(kHint), std::string::npos);
  }
  EXPECT_EQ(Downloads(server_), std::vector<std::string>{});
  EXPECT_FALSE(fs::exists(RepositoryInCache(kName)));
}

TEST_F(OfferDownloadTest, CtrlCAtTheQuestionEndsTheProgram) {
  PtyProgram program = OnTerminal();
  ASSERT_TRUE(program.WaitFor("[Y/n] "));
  program.Send("\x03");
  EXPECT_EQ(program.WaitForExit(), 130);
  EXPECT_TRUE(program.TerminalIsRestored());
}

TEST_F(OfferDownloadTest, CtrlCStopsTheDownloadAndTheNextOneContinues) {
  server_.AddCdnFault({.path = repository_.File("model.safetensors").sha256, .change = StallAfter(1 << 20)});
  {
    PtyProgram program = OnTerminal();
    ASSERT_TRUE(program.WaitFor("[Y/n] "));
    program.Send("y\r");
    ASSERT_TRUE(program.WaitFor(" %"));
    program.Send("\x03");
    EXPECT_EQ(program.WaitForExit(), 130);
    EXPECT_NE(program.output().find("the same command continues the download"), std::string::npos);
  }
  server_.RemoveFaults();
  PtyProgram program = OnTerminal();
  ASSERT_TRUE(program.WaitFor("[Y/n] "));
  program.Send("y\r");
  EXPECT_EQ(program.WaitForExit(), 0);
}

TEST_F(OfferDownloadTest, WithoutATerminalTheCommandIsPrintedAndNothingIsSent) {
  const ProgramResult result = WithoutTerminal();
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find(std::string(kHint) + "\n"), std::string::npos) << result.err;
  EXPECT_EQ(server_.Requests(), std::vector<std::string>{});
}

TEST_F(OfferDownloadTest, OfflineNothingIsAsked) {
  environment()["HF_HUB_OFFLINE"] = "1";
  PtyProgram program = OnTerminal();
  EXPECT_EQ(program.WaitForExit(), 3);
  EXPECT_NE(program.output().find("HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set; without it, vllmcli pull "),
            std::string::npos);
  EXPECT_EQ(server_.Requests(), std::vector<std::string>{});
}

TEST_F(OfferDownloadTest, ARepositoryThatDoesNotExistIsReported) {
  PtyProgram program({"run", "-m", "me/nothing", "hi"}, PtyOptions{environment(), "", 24, 200});
  EXPECT_EQ(program.WaitForExit(), 3);
  EXPECT_EQ(program.output().find("[Y/n]"), std::string::npos);
}

TEST_F(OfferDownloadTest, AHubThatDoesNotAnswerIsReportedWithTheCommand) {
  environment()["HF_ENDPOINT"] = "http://127.0.0.1:9";
  PtyProgram program = OnTerminal();
  EXPECT_EQ(program.WaitForExit(), 3);
  EXPECT_NE(program.output().find(kHint), std::string::npos) << program.output();
}

TEST_F(OfferDownloadTest, AnIncompleteDownloadIsOffered) {
  ASSERT_EQ(Pull({kName}).status, 0);
  fs::remove(RepositoryInCache(kName) / "blobs" / repository_.File("model.safetensors").sha256);
  server_.ForgetRequests();
  const ProgramResult result = WithoutTerminal();
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find("model me/guide-copy: its download is not complete\n" + std::string(kHint)),
            std::string::npos)
      << result.err;
  // The tokenizer does not need the weights.
  ProgramOptions options;
  options.environment = environment();
  EXPECT_EQ(RunProgram({"tokenize", "-m", kName, "hi"}, options).status, 0);
  EXPECT_EQ(server_.Requests(), std::vector<std::string>{});
  PtyProgram program = OnTerminal();
  ASSERT_TRUE(program.WaitFor("me/guide-copy is only partly installed. Download 6.6 MB of 6.7 MB from"));
  program.Send("y\r");
  EXPECT_EQ(program.WaitForExit(), 0);
}

TEST_F(OfferDownloadTest, AnAliasAndTheDefaultAreOffered) {
  ProgramOptions options;
  options.environment = environment();
  ASSERT_EQ(RunProgram({"models", "alias", std::string("small=") + kName}, options).status, 0);
  const ProgramResult use = RunProgram({"models", "use", "small"}, options);
  EXPECT_EQ(use.status, 0);
  EXPECT_NE(use.err.find("it is not installed; vllmcli pull me/guide-copy downloads it"), std::string::npos);
  PtyProgram program({"run", "-n", "3", "hi"}, PtyOptions{environment(), "", 24, 200});
  ASSERT_TRUE(program.WaitFor(kQuestion));
  program.Send("y\r");
  EXPECT_EQ(program.WaitForExit(), 0);
}

TEST_F(OfferDownloadTest, PulledModelsAreListedAndRemoved) {
  ASSERT_EQ(Pull({kName}).status, 0);
  ProgramOptions options;
  options.environment = environment();
  const auto list = nlohmann::json::parse(RunProgram({"models", "--json"}, options).out);
  EXPECT_EQ(list[0]["name"], kName);
  EXPECT_EQ(list[0]["problem"], nullptr);
  const ProgramResult result = RunProgram({"models", "rm", kName, "--yes"}, options);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_FALSE(fs::exists(RepositoryInCache(kName)));
}

}  // namespace
}  // namespace vllm::app
