// Faults of the network and of servers: `vllmcli pull` ends with the right files, or with an error and without a wrong
// one.
#include <filesystem>
#include <functional>

#include "tests/hub/pull_test.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using namespace testing_support;  // the faults
using std::chrono::milliseconds;

constexpr size_t kWeightBytes = 3 * kMiB + 1000;

const std::set<std::string> kModelPaths = {"config.json", "generation_config.json", "model.safetensors",
                                           "tokenizer.json", "tokenizer_config.json"};

class PullFaultsTest : public PullTest {
 protected:
  PullFaultsTest() : model_(MakeRepository("org/model", ModelFiles(kWeightBytes))) {
    server_.AddRepository(model_);
    environment()["HF_HUB_ETAG_TIMEOUT"] = "1";
    environment()["HF_HUB_DOWNLOAD_TIMEOUT"] = "1";
  }
  // Pulls the model and expects that the cache is complete.
  void ExpectSuccess() {
    const ProgramResult result = Pull({"org/model"});
    EXPECT_EQ(result.status, 0) << result.err;
    ExpectCached(model_, kModelPaths);
  }
  void ExpectFailure(int status, const std::string& text) {
    const ProgramResult result = Pull({"org/model"});
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
    ExpectNoWrongBlob();
  }
  fs::path WeightsBlob() const {
    return RepositoryInCache("org/model") / "blobs" / model_.File("model.safetensors").etag();
  }

  HubRepository model_;
};

TEST_F(PullFaultsTest, ConnectionsThatAreCutAfterEvery64KiBTransferEachByteOnce) {
  server_.AddCdnFault({.change = CutAfter(64 * kKiB)});
  ExpectSuccess();
  EXPECT_EQ(server_.gate().passed(), kWeightBytes);
}

TEST_F(PullFaultsTest, AConnectionIsCutAtEveryKindOfByte) {
  // Before the first byte, after it, and before the last byte of a response.
  server_.AddCdnFault({.change = CutAfter(0), .num_faulty = 1});
  server_.AddCdnFault({.change = CutAfter(1), .num_correct = 1, .num_faulty = 1});
  server_.AddCdnFault({.change = [](const HttpRequest&,
                                    HttpResponse& response) { response.delivery.cut_after = response.body_size - 1; },
                       .num_correct = 2,
                       .num_faulty = 2});
  ExpectSuccess();
  EXPECT_EQ(server_.gate().passed(), kWeightBytes);
}

TEST_F(PullFaultsTest, SmallFilesAreFetchedAgainAfterACut) {
  server_.AddFault({.path = "tokenizer.json", .change = CutAfter(5), .num_faulty = 1});
  server_.AddFault({.path = "/tree/", .change = CutAfter(20), .num_faulty = 1});
  server_.AddFault({.path = "/revision/", .change = CutAfter(20), .num_faulty = 1});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AServerWithoutRangesSendsTheWholeFile) {
  server_.AddCdnFault({.change = IgnoreRange()});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AServerWithoutRangesIsAskedAgainAfterACut) {
  server_.AddCdnFault({.change = IgnoreRange()});
  server_.AddCdnFault({.change = CutAfter(1 * kMiB), .num_faulty = 2});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AStalledTransferContinuesOnAnotherConnection) {
  server_.AddCdnFault({.change = StallAfter(100 * kKiB), .num_faulty = 1});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AServerThatDoesNotAnswerIsAskedAgain) {
  server_.AddFault({.path = "/tree/", .change = NeverAnswer(), .num_faulty = 1});
  server_.AddCdnFault({.change = NeverAnswer(), .num_faulty = 1});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AServerThatSendsByteByByteIsAskedAgain) {
  server_.AddFault({.path = "/revision/", .change = DripHead(milliseconds(50)), .num_faulty = 1});
  server_.AddCdnFault({.change = DripBody(milliseconds(50)), .num_faulty = 1});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, TemporaryErrorsAreRepeated) {
  server_.AddFault({.path = "/revision/", .change = AnswerError(503), .num_faulty = 1});
  server_.AddFault({.path = "/tree/", .change = AnswerError(500), .num_faulty = 1});
  server_.AddFault({.path = "config.json", .change = AnswerError(408), .num_faulty = 1});
  server_.AddCdnFault({.change = AnswerError(502), .num_faulty = 1});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, ALimitedRateIsWaitedFor) {
  server_.AddFault(
      {.path = "/tree/", .change = AnswerError(429, "", "Too many requests", {{"Retry-After", "1"}}), .num_faulty = 1});
  server_.AddFault({.path = "model.safetensors",
                    .change = AnswerError(429, "", "", {{"RateLimit", "\"resolvers\";r=0;t=1"}}),
                    .num_faulty = 1});
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("429"), std::string::npos) << result.err;
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullFaultsTest, ALongRequestedWaitIsAnError) {
  server_.AddFault({.path = "/tree/", .change = AnswerError(429, "", "", {{"Retry-After", "86400"}})});
  ExpectFailure(1, "429");
}

TEST_F(PullFaultsTest, ExpiredLinksAreRenewed) {
  // The limit stops the transfer in the middle. The link has expired when the connection is cut and a new one is made.
  server_.AddCdnFault({.change = CutAfter(1 * kMiB), .num_faulty = 1});
  server_.gate().Limit(512 * kKiB);
  const std::unique_ptr<BackgroundProgram> pull = StartPull({"org/model"});
  EXPECT_TRUE(server_.gate().WaitUntilASenderWaits());
  server_.ExpireLinks();
  server_.gate().Open();
  const ProgramResult result = pull->Wait();
  EXPECT_EQ(result.status, 0) << result.err;
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullFaultsTest, ARangeThatCannotBeSatisfiedIsAskedForAgain) {
  server_.AddCdnFault({.change = RangeNotSatisfiable(), .num_faulty = 1});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AWrongContentRangeIsNotUsed) {
  server_.AddCdnFault({.change = CutAfter(100 * kKiB), .num_faulty = 1});
  server_.AddCdnFault({.change = ShiftRange(), .num_correct = 1, .num_faulty = 1});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AnEmptyAnswerIsNotAFile) {
  server_.AddCdnFault({.change = EmptyBody(), .num_faulty = 1});
  ExpectFailure(3, "0 bytes");
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AnEmptyAnswerIsNotASmallFile) {
  server_.AddFault({.path = model_.CommitOf("main") + "/config.json",
                    .change = EmptyBody(),
                    .num_correct = 1,  // the redirect
                    .num_faulty = 1});
  ExpectFailure(3, "config.json");
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AWrongContentLengthIsNotBelieved) {
  server_.AddCdnFault({.change = AddToContentLength(-100), .num_faulty = 1});
  ExpectFailure(3, std::to_string(kWeightBytes - 100));
  server_.AddCdnFault({.change = AddToContentLength(100), .num_faulty = 1});
  ExpectFailure(3, std::to_string(kWeightBytes + 100));
  ExpectSuccess();
}

TEST_F(PullFaultsTest, EtagsOfTheCdnDoNotMatter) {
  server_.AddCdnFault({.change = ChangeEtag()});
  server_.AddCdnFault({.change = CutAfter(1 * kMiB), .num_faulty = 2});
  ExpectSuccess();
}

TEST_F(PullFaultsTest, AnotherVersionOfTheFileIsNotUsed) {
  server_.AddFault({.path = "model.safetensors", .change = ChangeEtag()});
  ExpectFailure(3, "another version of the file");
  EXPECT_FALSE(fs::exists(WeightsBlob()));
  server_.RemoveFaults();
  ExpectSuccess();
}

TEST_F(PullFaultsTest, WrongBytesAreAnErrorAndTheNextPullFetchesTheFileAgain) {
  server_.AddCdnFault({.change = FlipByte(2 * kMiB)});
  ExpectFailure(3, "model.safetensors");
  EXPECT_FALSE(fs::exists(WeightsBlob()));
  EXPECT_FALSE(fs::exists(Snapshot(model_) / "model.safetensors"));
  server_.RemoveFaults();
  ExpectSuccess();
}

TEST_F(PullFaultsTest, WrongBytesOfASmallFileAreAnError) {
  server_.AddFault({.path = "/config.json", .change = FlipByte(3)});
  ExpectFailure(3, "config.json");
  server_.RemoveFaults();
  ExpectSuccess();
}

TEST_F(PullFaultsTest, WrongBytesOfAnInterruptedDownloadAreFound) {
  // The first process stores a wrong byte and is killed; the second one fetches the rest.
  server_.AddCdnFault({.change = FlipByte(1000)});
  server_.gate().Limit(2 * kMiB);
  const std::unique_ptr<BackgroundProgram> pull = StartPull({"org/model"});
  EXPECT_TRUE(server_.gate().WaitUntilASenderWaits());
  pull->Signal(SIGINT);
  EXPECT_EQ(pull->Wait().status, 130);
  server_.gate().Open();
  server_.RemoveFaults();
  const ProgramResult second = Pull({"org/model"});
  EXPECT_TRUE(second.status == 0 || second.status == 3) << second.err;
  ExpectNoWrongBlob();
  ExpectSuccess();
}

// Each fault below lasts until the program gives up, which takes several attempts, so that all run at once.
struct LastingFault {
  std::string name;
  std::function<void(HubServer&)> add;
  int status;
  std::string text;  // in the error
};

TEST(PullLastingFaultsTest, APullGivesUpAndSaysHowToContinue) {
  const auto hub = [](const std::string& path, const ResponseChange& change) {
    return [=](HubServer& server) { server.AddFault({.path = path, .change = change}); };
  };
  const auto cdn = [](const ResponseChange& change) {
    return [=](HubServer& server) { server.AddCdnFault({.change = change}); };
  };
  const std::vector<LastingFault> faults = {
      {"no revision", hub("/revision/", AnswerError(500)), 1, "500"},
      {"no answer", hub("/revision/", NeverAnswer()), 1, ""},
      {"no tree", hub("/tree/", AnswerError(503)), 1, "503"},
      {"rate", hub("/tree/", AnswerError(429)), 1, "429"},
      {"slow tree", hub("/tree/", DripBody(milliseconds(50))), 1, ""},
      {"no small file", hub("config.json", AnswerError(500)), 1, "500"},
      {"no weights", cdn(AnswerError(500)), 1, "500"},
      {"denied weights", cdn(AnswerError(403)), 1, "403"},
      {"no range", cdn(RangeNotSatisfiable()), 1, "rejects a range"},
      {"silent", cdn(NeverAnswer()), 1, ""},
      {"stalled", cdn(StallAfter(0)), 1, ""},
      {"cut at once", cdn(CutAfter(0)), 1, ""},
  };
  struct Run {
    Run() {
      repository = MakeRepository("org/model", ModelFiles(200 * kKiB));
      server.AddRepository(repository);
    }
    HubServer server;
    TempDirectory home;
    HubRepository repository;
    std::unique_ptr<BackgroundProgram> program;
  };
  std::vector<std::unique_ptr<Run>> runs;
  for (const LastingFault& fault : faults) {
    Run& run = *runs.emplace_back(std::make_unique<Run>());
    fault.add(run.server);
    run.program =
        std::make_unique<BackgroundProgram>(std::vector<std::string>{"pull", "org/model"},
                                            std::map<std::string, std::string>{{"HF_ENDPOINT", run.server.endpoint()},
                                                                               {"HF_HOME", run.home.path()},
                                                                               {"HF_HUB_ETAG_TIMEOUT", "1"},
                                                                               {"HF_HUB_DOWNLOAD_TIMEOUT", "1"}});
  }
  for (size_t i = 0; i < faults.size(); ++i) {
    const std::string& name = faults[i].name;
    const ProgramResult result = runs[i]->program->Wait();
    EXPECT_EQ(result.status, faults[i].status) << name << ": " << result.err;
    EXPECT_EQ(result.out, "") << name;
    EXPECT_NE(result.err.find(faults[i].text), std::string::npos) << name << ": " << result.err;
    if (name != "denied weights") {
      EXPECT_NE(result.err.find("the same command continues the download"), std::string::npos) << name << result.err;
    }
    EXPECT_FALSE(fs::exists(runs[i]->home.path() + "/hub/models--org--model/refs/main")) << name;
  }
}

TEST_F(PullFaultsTest, NobodyListensAtTheEndpoint) {
  int port = 0;
  {
    const HubServer ended;
    port = std::stoi(ended.endpoint().substr(ended.endpoint().rfind(':') + 1));
  }
  environment()["HF_ENDPOINT"] = "http://127.0.0.1:" + std::to_string(port);
  ExpectFailure(1, "127.0.0.1");
  EXPECT_EQ(AllFiles(), std::set<std::string>());
}

}  // namespace
}  // namespace vllm::app
