// Runs the commands with --kv-disk-cache, and vllmcli cache. A run whose prompt is on disk computes only the end of it
// and gives the same answer. A directory or file that cannot be trusted leads to one warning and the same answer.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/program/background_program.h"
#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

constexpr const char* kPrompt =
    "How do I run a batch of prompts from a file, and where do the answers go? Please name the command, its flags and "
    "the format of the file, and say what happens if the machine stops in the middle of the job.";

class KVDiskCacheProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = GuideModel();
    ASSERT_NE(model_, "");
    directory_ = temp_.path() + "/cache/vllmcli/kv";
    options_.environment = {{"XDG_CACHE_HOME", temp_.path() + "/cache"},
                            {"XDG_DATA_HOME", temp_.path() + "/data"},
                            {"XDG_STATE_HOME", temp_.path() + "/state"}};
  }

  ProgramResult Run(std::vector<std::string> more, const std::string& size = "100M",
                    const std::string& prompt = kPrompt) const {
    more.insert(more.begin(), {"run", "-m", model_, "-t", "0", "-n", "12", "--ignore-eos", "--json"});
    if (!size.empty()) more.insert(more.end(), {"--kv-disk-cache", size});
    more.push_back(prompt);
    return RunProgram(more, options_);
  }
  // Returns the answer of a run, and sets `cached` to the number of prompt tokens that it did not compute.
  static Json Answer(const ProgramResult& result, int64_t& cached) {
    EXPECT_EQ(result.status, 0) << result.err;
    const Json json = Json::parse(result.out);
    cached = json["cached_tokens"];
    return json["outputs"];
  }
  std::vector<std::filesystem::path> Segments() const {
    std::vector<std::filesystem::path> paths;
    if (!std::filesystem::exists(directory_)) return paths;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().extension() == ".kvseg") paths.push_back(entry.path());
    }
    return paths;
  }
  ProgramResult Cache(const std::vector<std::string>& words) const {
    std::vector<std::string> arguments = {"cache"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    return RunProgram(arguments, options_);
  }
  static size_t CountOf(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  TempDirectory temp_;
  std::string directory_;
  std::string model_;
  ProgramOptions options_;
};

TEST_F(KVDiskCacheProgramTest, SecondRunComputesOnlyTheEndOfThePrompt) {
  int64_t cached = 0;
  const Json expected = Answer(Run({}, "off"), cached);
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(Answer(Run({}), cached), expected);
  EXPECT_EQ(cached, 0);
  const ProgramResult warm = Run({"--stats"});
  EXPECT_EQ(Answer(warm, cached), expected);
  const int64_t num_prompt_tokens = Json::parse(warm.out)["prompt_tokens"];
  EXPECT_EQ(cached, (num_prompt_tokens - 1) / 16 * 16);
  EXPECT_NE(warm.err.find("KV cache on disk: " + std::to_string(cached) + " tokens loaded, 0 saved"), std::string::npos)
      << warm.err;
  ASSERT_EQ(Segments().size(), 1u);
  struct stat status {};
  ASSERT_EQ(stat(Segments()[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  // Other ways to compute KV have other entries.
  EXPECT_EQ(Answer(Run({"--tensor-parallel-size", "2", "--threads-per-rank", "1"}), cached), expected);
  EXPECT_EQ(cached, 0);
}

TEST_F(KVDiskCacheProgramTest, SmallModelsRunsWithoutTracesAndPrivateRunsHaveNone) {
  int64_t cached = 0;
  Answer(Run({}, ""), cached);  // the bundled model is small
  EXPECT_TRUE(Segments().empty());
  Answer(Run({"--no-save"}), cached);
  EXPECT_TRUE(Segments().empty());
  Answer(Run({"--ephemeral"}), cached);
  EXPECT_TRUE(Segments().empty());
  const ProgramResult traced = Run({"--trace", temp_.path() + "/trace"});
  Answer(traced, cached);
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(CountOf(traced.err, "--kv-disk-cache"), 1u) << traced.err;
  const ProgramResult off = Run({"--no-enable-prefix-caching"});
  Answer(off, cached);
  EXPECT_EQ(CountOf(off.err, "--kv-disk-cache: off, because the prefix cache is off"), 1u) << off.err;
}

TEST_F(KVDiskCacheProgramTest, NoSaveDoesNotReadEither) {
  int64_t cached = 0;
  const Json expected = Answer(Run({}), cached);
  EXPECT_EQ(Answer(Run({"--no-save"}), cached), expected);
  EXPECT_EQ(cached, 0);
}

TEST_F(KVDiskCacheProgramTest, RejectsWrongSizes) {
  for (const char* size : {"", "4X", "-1", "1e99", "on"}) {
    const ProgramResult result = RunProgram({"run", "-m", model_, "--kv-disk-cache", size, "hi"}, options_);
    EXPECT_EQ(result.status, 2) << size << result.err;
    EXPECT_NE(result.err.find("--kv-disk-cache"), std::string::npos) << result.err;
  }
}

TEST_F(KVDiskCacheProgramTest, BatchLoadsWhatAnEarlierBatchComputed) {
  std::string rows;
  for (int i = 0; i < 20; ++i) {
    const std::string prompt = std::string(kPrompt) + " Question " + std::to_string(i);
    rows += Json({{"custom_id", std::to_string(i)}, {"prompt", prompt}}).dump() + "\n";
  }
  const std::string input = temp_.Write("rows.jsonl", rows);
  std::vector<std::map<std::string, Json>> records;
  std::string stats;
  for (const char* name : {"off", "cold", "warm"}) {
    const std::string output = temp_.path() + "/" + name + ".jsonl";
    const ProgramResult result = RunProgram({"batch", "-m", model_, "-n", "8", "-t", "0", "-o", output, "--stats",
                                             "--kv-disk-cache", std::string(name) == "off" ? "off" : "50M", input},
                                            options_);
    ASSERT_EQ(result.status, 0) << result.err;
    records.push_back(ReadBatchRecords(output));
    stats = result.err;
  }
  ASSERT_EQ(records[0].size(), 20u);
  int64_t num_cached_tokens = 0;
  for (const auto& [id, record] : records[0]) {
    EXPECT_EQ(records[1].at(id)["outputs"], record["outputs"]);
    EXPECT_EQ(records[2].at(id)["outputs"], record["outputs"]);
    num_cached_tokens += (record["prompt_tokens"].get<int64_t>() - 1) / 16 * 16;
  }
  // The warm run computes no full block of a prompt.
  EXPECT_NE(stats.find(" (" + std::to_string(num_cached_tokens) + " of "), std::string::npos) << stats;
  EXPECT_NE(stats.find(" tokens loaded, 0 saved"), std::string::npos) << stats;
}

TEST_F(KVDiskCacheProgramTest, CacheListsVerifiesAndClears) {
  ProgramResult result = Cache({"list"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "");
  int64_t cached = 0;
  const Json expected = Answer(Run({}), cached);
  result = Cache({"list", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json list = Json::parse(result.out);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_GT(list[0]["tokens"], 32);
  EXPECT_EQ(list[0]["bytes"].get<uintmax_t>(), std::filesystem::file_size(Segments().at(0)));
  result = Cache({"verify"});
  EXPECT_EQ(result.status, 0) << result.err;

  // One wrong byte in the last payload.
  const std::filesystem::path segment = Segments().at(0);
  {
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(std::filesystem::file_size(segment) - 100);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  }
  EXPECT_EQ(Answer(Run({}), cached), expected);
  const Json after = Json::parse(Cache({"list", "--json"}).out);
  EXPECT_EQ(after[0]["blocks"], list[0]["blocks"]) << "the damaged block is erased and saved again";

  result = Cache({"clear"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("deleted 1 file"), std::string::npos) << result.err;
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(Cache({"wipe"}).status, 2);
  EXPECT_EQ(Cache({"list", "clear"}).status, 2);
}

TEST_F(KVDiskCacheProgramTest, UntrustedDirectoryLeadsToOneWarning) {
  int64_t cached = 0;
  const Json expected = Answer(Run({}, "off"), cached);
  const std::filesystem::path path = directory_;
  const auto make = [&](const std::string& kind) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path.parent_path());
    if (kind == "symbolic link") {
      std::filesystem::create_directory(temp_.path() + "/elsewhere");
      std::filesystem::create_directory_symlink(temp_.path() + "/elsewhere", path);
    } else if (kind == "FIFO") {
      ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    } else if (kind == "file") {
      std::ofstream(path) << "text";
    } else {
      std::filesystem::create_directory(path);
      std::filesystem::permissions(path, std::filesystem::perms(0777));
    }
  };
  for (const char* kind : {"symbolic link", "FIFO", "file", "mode"}) {
    make(kind);
    const ProgramResult result = Run({});
    EXPECT_EQ(Answer(result, cached), expected) << kind;
    EXPECT_EQ(CountOf(result.err, "--kv-disk-cache: off, because"), 1u) << kind << ": " << result.err;
    EXPECT_EQ(CountOf(result.err, "\n"), 1u) << kind << ": " << result.err;
    EXPECT_NE(result.err.find(directory_), std::string::npos) << kind << ": " << result.err;
  }
}

TEST_F(KVDiskCacheProgramTest, UntrustedSegmentLeadsToOneWarning) {
  int64_t cached = 0;
  const Json expected = Answer(Run({}), cached);
  const std::filesystem::path segment = Segments().at(0);
  std::filesystem::permissions(segment, std::filesystem::perms(0666));
  ProgramResult result = Run({});
  EXPECT_EQ(Answer(result, cached), expected);
  EXPECT_EQ(cached, 0);
  EXPECT_EQ(CountOf(result.err, segment.filename().string()), 1u) << result.err;
  std::filesystem::remove(segment);
  ASSERT_EQ(mkfifo(segment.c_str(), 0600), 0);
  result = Run({});
  EXPECT_EQ(Answer(result, cached), expected);
  EXPECT_EQ(CountOf(result.err, "warning"), 1u) << result.err;
}

TEST_F(KVDiskCacheProgramTest, RunsThatAreKilledLeaveAUsableCache) {
  int64_t cached = 0;
  const Json expected = Answer(Run({}, "off"), cached);
  std::mt19937 random(3);
  for (int i = 0; i < 12; ++i) {
    BackgroundProgram program(
        {"run", "-m", model_, "-t", "0", "-n", "12", "--ignore-eos", "--json", "--kv-disk-cache", "100M", kPrompt},
        options_.environment);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    program.Signal(SIGKILL);
    program.Wait();
    if (i % 3 == 2) {
      EXPECT_EQ(Answer(Run({}), cached), expected);
    }
  }
  EXPECT_EQ(Cache({"verify"}).status, 0);
  EXPECT_EQ(Answer(Run({}), cached), expected);
  EXPECT_GT(cached, 0);
}

}  // namespace
}  // namespace vllm::app
