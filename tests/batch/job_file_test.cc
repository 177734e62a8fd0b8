#include "app/batch/job/job_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

class JobFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_job_file_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    path_ = (directory_ / "out.jsonl.job").string();
  }
  void TearDown() override { fs::remove_all(directory_); }

  static JobEntry Entry(int64_t index) {
    JobEntry entry;
    entry.status = static_cast<RowStatus>(index % kNumRowStatuses);
    entry.in_errors_file = index % 3 == 1;
    entry.was_openai = index % 5 == 1;
    entry.time = 1'800'000'000u + static_cast<uint32_t>(index);
    entry.index = index << 33;
    entry.digest = 0x1234567890ABCDEFu * static_cast<uint64_t>(index + 1);
    entry.id = {static_cast<uint64_t>(index), ~static_cast<uint64_t>(index)};
    entry.end = (index + 1) << 35;
    entry.record_hash = 7;
    entry.num_prompt_tokens = 8;
    entry.num_output_tokens = 9;
    return entry;
  }
  static bool Equal(const JobEntry& a, const JobEntry& b) {
    return a.kind == b.kind && a.status == b.status && a.in_errors_file == b.in_errors_file &&
           a.was_openai == b.was_openai && a.time == b.time && a.index == b.index && a.digest == b.digest &&
           a.id == b.id && a.end == b.end && a.record_hash == b.record_hash &&
           a.num_prompt_tokens == b.num_prompt_tokens && a.num_output_tokens == b.num_output_tokens;
  }
  void WriteJob(int num_entries) const {
    const std::unique_ptr<JobFile> job = JobFile::Create(path_, {{"job", "vllmcli batch"}, {"version", 1}, {"x", "y"}});
    job->Rename();
    for (int i = 0; i < num_entries; ++i) job->Append(Entry(i));
  }
  // Returns the number of entries, which must be the first ones of WriteJob; -1 if the file is rejected.
  int NumEntries() const {
    int count = 0;
    int64_t size = 0;
    try {
      const auto header = ReadJob(
          path_,
          [&](const JobEntry& entry) {
            EXPECT_TRUE(Equal(entry, Entry(count))) << count;
            ++count;
          },
          size);
      EXPECT_EQ(header["x"], "y");
      EXPECT_EQ(size % 64, 0);
    } catch (const ConfigError&) {
      return -1;
    }
    return count;
  }
  std::string Read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  fs::path directory_;
  std::string path_;
};

TEST_F(JobFileTest, EntriesAreReadBackUnchanged) {
  WriteJob(10'000);
  EXPECT_EQ(NumEntries(), 10'000);
  EXPECT_FALSE(fs::exists(path_ + ".tmp"));
}

TEST_F(JobFileTest, AFileCutAtAnyByteHasItsWholeEntries) {
  WriteJob(3);
  const std::string bytes = Read();
  const size_t header_bytes = bytes.size() - 3 * JobEntry::kBytes;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    Write(bytes.substr(0, size));
    EXPECT_EQ(NumEntries(), size < header_bytes ? -1 : static_cast<int>((size - header_bytes) / JobEntry::kBytes))
        << size;
  }
}

TEST_F(JobFileTest, AChangedByteInAnEntryEndsTheList) {
  WriteJob(3);
  const std::string bytes = Read();
  const size_t header_bytes = bytes.size() - 3 * JobEntry::kBytes;
  for (size_t at = header_bytes; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Write(damaged);
    EXPECT_EQ(NumEntries(), static_cast<int>((at - header_bytes) / JobEntry::kBytes)) << at;
  }
}

TEST_F(JobFileTest, OtherFilesAreRejected) {
  for (const char* text : {"", "\n", "{}\n", "{\"job\":1}\n", "[]", "{\"index\":0}\n"}) {
    Write(text);
    EXPECT_EQ(NumEntries(), -1) << text;
  }
  std::string line = R"({"job":"vllmcli batch","version":2})";
  line.append(63 - line.size() % 64, ' ');
  Write(line + "\n");
  EXPECT_EQ(NumEntries(), -1);
  Write(std::string(20 << 20, ' '));
  EXPECT_EQ(NumEntries(), -1);
}

TEST_F(JobFileTest, AnOpenedFileContinuesAfterItsWholeEntries) {
  WriteJob(3);
  const std::string bytes = Read();
  Write(bytes.substr(0, bytes.size() - 5));
  int64_t size = 0;
  ReadJob(
      path_, [](const JobEntry&) {}, size);
  JobFile::Open(path_, size)->Append(Entry(2));
  EXPECT_EQ(Read(), bytes);
}

}  // namespace
}  // namespace vllm::app
