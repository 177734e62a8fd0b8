// Pulls that are killed, interrupted, run twice at once, or run out of disk space: the next one continues, and the
// cache never has a wrong file.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include "tests/hub/pull_test.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using namespace testing_support;  // the faults

// Three ranges of 4 MiB, which are fetched at once.
constexpr size_t kWeightBytes = 9 * kMiB + 1000;

const std::set<std::string> kModelPaths = {"config.json", "generation_config.json", "model.safetensors",
                                           "tokenizer.json", "tokenizer_config.json"};

// Waits until `is_true` returns true. Returns false after a minute.
bool WaitUntil(const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Runs `script` in a new mount namespace, where a user may mount a tmpfs. The network stays the same.
int RunInNamespace(const std::string& script) {
  return std::system(("unshare -rm sh -c '" + script + "' 2>/dev/null").c_str());
}

class PullInterruptionTest : public PullTest {
 protected:
  PullInterruptionTest() : model_(MakeRepository("org/model", ModelFiles(kWeightBytes))) {
    server_.AddRepository(model_);
  }

  fs::path Blobs() const { return RepositoryInCache(model_.id) / "blobs"; }
  std::string WeightsEtag() const { return model_.File("model.safetensors").etag(); }
  bool HasWeights() const { return fs::exists(Blobs() / WeightsEtag()); }
  // Returns how many bytes of the weights an interrupted pull has recorded.
  uint64_t RecordedBytes() const {
    if (HasWeights()) return kWeightBytes;
    uint64_t bytes = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(Blobs(), error)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(WeightsEtag()) || !name.ends_with(".vllmcli-state")) continue;
      std::istringstream lines(ReadFile(entry.path()));
      uint64_t in_file = 0;
      for (std::string word; lines >> word;) {
        uint64_t begin = 0;
        uint64_t end = 0;
        if (word == "range" && lines >> begin >> end) in_file += end - begin;
      }
      bytes = std::max(bytes, in_file);
    }
    return bytes;
  }
  // Runs a command line of pull in the namespace of RunInNamespace, with the cache in `home`.
  std::string PullIn(const std::string& home) {
    return "HF_ENDPOINT=" + server_.endpoint() + " HF_HOME=" + home + " " + VLLMCLI_BINARY +
           " pull org/model >/dev/null";
  }
  // Starts a pull and interrupts it with the signal when `num_bytes` of the weights have been sent and the program has
  // stored at least one byte.
  ProgramResult Interrupt(int signal_number, uint64_t num_bytes) {
    server_.gate().Limit(num_bytes);
    const std::unique_ptr<BackgroundProgram> pull = StartPull({"org/model"});
    EXPECT_TRUE(server_.gate().WaitUntilASenderWaits());
    EXPECT_TRUE(WaitUntil([&] { return RecordedBytes() > 0; }));
    pull->Signal(signal_number);
    return pull->Wait();
  }

  HubRepository model_;
};

TEST_F(PullInterruptionTest, ASignalKeepsTheBytesAndTheSameCommandContinues) {
  for (const int signal_number : {SIGINT, SIGTERM}) {
    const ProgramResult result = Interrupt(signal_number, 5 * kMiB);
    EXPECT_EQ(result.status, 128 + signal_number);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find("the same command continues the download"), std::string::npos) << result.err;
    EXPECT_FALSE(HasWeights());
    EXPECT_FALSE(fs::exists(RepositoryInCache(model_.id) / "refs/main"));
    const uint64_t recorded = RecordedBytes();
    EXPECT_GT(recorded, 0u);
    const uint64_t before = server_.gate().passed();
    server_.gate().Open();
    EXPECT_EQ(Pull({"org/model"}).status, 0);
    EXPECT_EQ(server_.gate().passed() - before, kWeightBytes - recorded);
    ExpectCached(model_, kModelPaths);
    fs::remove_all(Cache());
  }
}

TEST_F(PullInterruptionTest, CtrlCOnATerminalEndsTheProgressLine) {
  server_.gate().Limit(5 * kMiB);
  PtyProgram pull({"pull", "org/model"}, environment());
  EXPECT_TRUE(pull.WaitFor(" %, ")) << pull.output();
  EXPECT_TRUE(pull.WaitFor(" of 9.4 MB")) << pull.output();
  pull.Send("\x03");
  EXPECT_EQ(pull.WaitForExit(), 130);
  EXPECT_NE(pull.output().find("the same command continues the download"), std::string::npos) << pull.output();
  EXPECT_TRUE(pull.TerminalIsRestored());
  server_.gate().Open();
  PtyProgram second({"pull", "org/model"}, environment());
  EXPECT_TRUE(second.WaitFor(Snapshot(model_).filename().string().substr(0, 8))) << second.output();
  EXPECT_EQ(second.WaitForExit(), 0);
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullInterruptionTest, AKilledPullIsContinuedWhereItsRecordEnds) {
  std::mt19937 random(3);
  for (int num_kills = 0; num_kills < 15; ++num_kills) {
    const uint64_t recorded = RecordedBytes();
    server_.gate().Limit(std::uniform_int_distribution<uint64_t>(1, 500 * kKiB)(random));
    const std::unique_ptr<BackgroundProgram> pull = StartPull({"org/model"});
    ASSERT_TRUE(server_.gate().WaitUntilASenderWaits());
    // Half of the processes live until they have recorded something.
    EXPECT_TRUE(num_kills % 2 == 1 || WaitUntil([&] { return RecordedBytes() > recorded; }));
    pull->Signal(SIGKILL);
    EXPECT_EQ(pull->Wait().status, 128 + SIGKILL);
    EXPECT_GE(RecordedBytes(), recorded);
    ExpectNoWrongBlob();
  }
  const uint64_t recorded = RecordedBytes();
  const uint64_t before = server_.gate().passed();
  server_.gate().Open();
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  EXPECT_EQ(server_.gate().passed() - before, kWeightBytes - recorded);
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullInterruptionTest, APullThatIsKilledAtAnyTimeLeavesACacheThatTheNextOneCompletes) {
  // Many small files, so that the kills also hit the publication of blobs and links.
  std::map<std::string, std::string> files = ModelFiles(200 * kKiB);
  std::set<std::string> paths = kModelPaths;
  for (int i = 0; i < 20; ++i) {
    const std::string path = "vocab" + std::to_string(i) + ".json";
    files[path] = RandomBytes(1000, static_cast<unsigned>(i + 10));
    paths.insert(path);
  }
  model_ = MakeRepository("org/model", files);
  server_.AddRepository(model_);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(Pull({"org/model"}).status, 0);
  const auto duration = std::chrono::steady_clock::now() - start;
  ExpectCached(model_, paths);
  std::mt19937 random(5);
  for (int i = 0; i < 12; ++i) {
    fs::remove_all(Cache());
    for (int kill = 0; kill < 2; ++kill) {
      const std::unique_ptr<BackgroundProgram> pull = StartPull({"org/model"});
      // A random moment, not a wait for something: every moment must be survived.
      std::this_thread::sleep_for(duration * std::uniform_real_distribution<double>(0, 1.1)(random));
      pull->Signal(SIGKILL);
      pull->Wait();
      ExpectNoWrongBlob();
    }
    const ProgramResult result = Pull({"org/model"});
    EXPECT_EQ(result.status, 0) << result.err;
    // Temporary links and states of killed processes may remain, so only the model's files are compared.
    for (const std::string& path : paths) {
      EXPECT_TRUE(ReadFile(Snapshot(model_) / path) == files[path]) << path;
    }
    EXPECT_EQ(ReadFile(RepositoryInCache(model_.id) / "refs/main"), model_.CommitOf("main"));
  }
}

TEST_F(PullInterruptionTest, TwoPullsAtOnceDownloadEachByteOnce) {
  server_.gate().Limit(1 * kMiB);
  const std::unique_ptr<BackgroundProgram> first = StartPull({"org/model"});
  EXPECT_TRUE(server_.gate().WaitUntilASenderWaits());
  const std::unique_ptr<BackgroundProgram> second = StartPull({"org/model"});
  EXPECT_TRUE(second->WaitForError("waiting"));
  server_.gate().Open();
  const ProgramResult results[] = {first->Wait(), second->Wait()};
  for (const ProgramResult& result : results) {
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, Snapshot(model_).string() + "\n");
  }
  EXPECT_EQ(server_.gate().passed(), kWeightBytes);
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullInterruptionTest, AWaitingPullContinuesTheDownloadOfOneThatIsKilled) {
  server_.gate().Limit(5 * kMiB);
  const std::unique_ptr<BackgroundProgram> first = StartPull({"org/model"});
  EXPECT_TRUE(server_.gate().WaitUntilASenderWaits());
  EXPECT_TRUE(WaitUntil([&] { return RecordedBytes() > 0; }));
  const std::unique_ptr<BackgroundProgram> second = StartPull({"org/model"});
  EXPECT_TRUE(second->WaitForError("waiting"));
  first->Signal(SIGKILL);
  first->Wait();
  server_.gate().Open();
  const ProgramResult result = second->Wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_LT(server_.gate().passed(), 5 * kMiB + kWeightBytes);
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullInterruptionTest, AWaitingPullCanBeInterrupted) {
  server_.gate().Limit(1 * kMiB);
  const std::unique_ptr<BackgroundProgram> first = StartPull({"org/model"});
  EXPECT_TRUE(server_.gate().WaitUntilASenderWaits());
  const std::unique_ptr<BackgroundProgram> second = StartPull({"org/model"});
  EXPECT_TRUE(second->WaitForError("waiting"));
  second->Signal(SIGINT);
  EXPECT_EQ(second->Wait().status, 130);
  server_.gate().Open();
  EXPECT_EQ(first->Wait().status, 0);
  EXPECT_EQ(server_.gate().passed(), kWeightBytes);
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullInterruptionTest, TheLockOfHuggingfaceHubIsRespected) {
  // huggingface_hub locks an empty file with flock.
  const fs::path locks = Cache() / ".locks/models--org--model";
  fs::create_directories(locks);
  const tokenizer::UniqueFd lock(open((locks / (WeightsEtag() + ".lock")).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  const std::unique_ptr<BackgroundProgram> pull = StartPull({"org/model"});
  EXPECT_TRUE(pull->WaitForError("waiting"));
  EXPECT_EQ(server_.gate().passed(), 0u);
  // The other program has finished the download.
  fs::create_directories(Blobs());
  std::ofstream(Blobs() / (WeightsEtag() + ".tmp"), std::ios::binary) << *model_.File("model.safetensors").bytes;
  fs::rename(Blobs() / (WeightsEtag() + ".tmp"), Blobs() / WeightsEtag());
  ASSERT_EQ(flock(lock.get(), LOCK_UN), 0);
  const ProgramResult result = pull->Wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(server_.gate().passed(), 0u);
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullInterruptionTest, TooLittleSpaceIsFoundBeforeTheDownload) {
  const std::string disk = Path("disk");
  fs::create_directories(disk);
  if (RunInNamespace("mount -t tmpfs -o size=1m none " + disk) != 0) GTEST_SKIP() << "needs root: cannot mount a tmpfs";
  RunInNamespace("mount -t tmpfs -o size=8m none " + disk + " && " + PullIn(disk) + " 2>" + Path("err") +
                 "; echo $? >" + Path("status"));
  EXPECT_EQ(ReadFile(Path("status")), "4\n");
  EXPECT_NE(ReadFile(Path("err")).find("not enough free disk space"), std::string::npos) << ReadFile(Path("err"));
  EXPECT_EQ(Downloads(server_), std::vector<std::string>());
}

TEST_F(PullInterruptionTest, AFullDiskKeepsTheBytesAndTheSameCommandContinues) {
  const std::string disk = Path("disk");
  fs::create_directories(disk);
  if (RunInNamespace("mount -t tmpfs -o size=1m none " + disk) != 0) GTEST_SKIP() << "needs root: cannot mount a tmpfs";
  server_.gate().Limit(1 * kMiB);
  // Another program fills the disk during the download.
  std::thread script([&] {
    RunInNamespace("mount -t tmpfs -o size=32m none " + disk + " && { " + PullIn(disk) + " 2>" + Path("err") +
                   "& pull=$!; while [ ! -e " + Path("fill") + " ]; do sleep 0.01; done; cat /dev/zero >" + disk +
                   "/other; touch " + Path("filled") + "; wait $pull; echo $? >" + Path("status") + "; rm " + disk +
                   "/other; " + PullIn(disk) + " 2>>" + Path("err") + "; echo $? >>" + Path("status") + "; cp -a " +
                   disk + " " + Path("hf") + "; }");
  });
  EXPECT_TRUE(server_.gate().WaitUntilASenderWaits());
  home_.Write("fill", "");
  EXPECT_TRUE(WaitUntil([&] { return fs::exists(Path("filled")); }));
  server_.gate().Open();
  script.join();
  EXPECT_EQ(ReadFile(Path("status")), "4\n0\n") << ReadFile(Path("err"));
  EXPECT_NE(ReadFile(Path("err")).find("No space left on device"), std::string::npos) << ReadFile(Path("err"));
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullInterruptionTest, ACacheThatCannotBeWrittenIsAnErrorUnlessItIsComplete) {
  const std::string disk = Path("disk");
  fs::create_directories(disk);
  if (RunInNamespace("mount -t tmpfs -o size=1m none " + disk) != 0) GTEST_SKIP() << "needs root: cannot mount a tmpfs";
  RunInNamespace("mount -t tmpfs -o size=64m none " + disk + " && mount -o remount,ro " + disk + " && { " +
                 PullIn(disk) + " 2>" + Path("err") + "; echo $? >" + Path("status") + "; mount -o remount,rw " + disk +
                 "; " + PullIn(disk) + "; echo $? >>" + Path("status") + "; mount -o remount,ro " + disk + "; " +
                 PullIn(disk) + "; echo $? >>" + Path("status") + "; }");
  EXPECT_EQ(ReadFile(Path("status")), "4\n0\n0\n");
  EXPECT_NE(ReadFile(Path("err")).find("Read-only file system"), std::string::npos) << ReadFile(Path("err"));
}

TEST_F(PullInterruptionTest, OldPartialFilesAreRemoved) {
  fs::create_directories(Blobs());
  const std::string old_name = std::string(64, 'a') + ".12345678";
  const std::string other_name = std::string(64, 'b') + ".12345678.incomplete";
  for (const std::string& name : {old_name + ".vllmcli-part", old_name + ".vllmcli-state", other_name}) {
    std::ofstream(Blobs() / name) << "x";
    fs::last_write_time(Blobs() / name, fs::file_time_type::clock::now() - std::chrono::hours(24 * 8));
  }
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  EXPECT_FALSE(fs::exists(Blobs() / (old_name + ".vllmcli-part")));
  EXPECT_FALSE(fs::exists(Blobs() / (old_name + ".vllmcli-state")));
  EXPECT_TRUE(fs::exists(Blobs() / other_name));  // of huggingface_hub
  fs::remove(Blobs() / other_name);
  ExpectCached(model_, kModelPaths);
}

}  // namespace
}  // namespace vllm::app
