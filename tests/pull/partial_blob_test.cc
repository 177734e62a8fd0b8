#include "app/hub/pull/partial_blob.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/hub/pull/blob_lock.h"
#include "app/hub/pull/resume_state.h"
#include "tests/support/temp_directory.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

const std::string kEtag(64, 'e');

class PartialBlobTest : public testing::Test {
 protected:
  // Leaves a partial blob of an earlier process: `text` with a state that names its owner.
  void Store(const std::string& suffix, const std::string& text, int64_t size, int64_t pid, const std::string& host) {
    directory_.Write(kEtag + "." + suffix + ".vllmcli-part", text);
    ResumeState state{kEtag, size, pid, host, {}};
    state.ranges.Add({0, static_cast<int64_t>(text.size())});
    directory_.Write(kEtag + "." + suffix + ".vllmcli-state", FormatResumeState(state));
  }
  std::vector<std::string> Names() const { return tokenizer::NamesInDirectory(directory_.path()); }
  std::string TextOf(const std::string& name) const {
    std::string text;
    tokenizer::ReadRegularFile(directory_.path() + "/" + name, 1000, text);
    return text;
  }

  TempDirectory directory_;
};

TEST_F(PartialBlobTest, CompleteBlobGetsItsName) {
  PartialBlob blob(directory_.path(), kEtag, 6, true);
  blob.Write(3, "def");
  EXPECT_FALSE(blob.is_complete());
  blob.Write(0, "abc");
  EXPECT_TRUE(blob.is_complete());
  blob.SaveState();
  EXPECT_EQ(blob.Publish(), directory_.path() + "/" + kEtag);
  EXPECT_EQ(Names(), std::vector<std::string>{kEtag});
  EXPECT_EQ(TextOf(kEtag), "abcdef");
}

TEST_F(PartialBlobTest, AnotherObjectContinues) {
  {
    PartialBlob blob(directory_.path(), kEtag, 6, true);
    blob.Write(0, "abc");
    blob.SaveState();
  }
  EXPECT_EQ(StoredBytes(directory_.path(), kEtag, 6), 3);
  PartialBlob blob(directory_.path(), kEtag, 6, true);
  EXPECT_TRUE(blob.is_resumed());
  EXPECT_EQ(blob.ranges().prefix(), 3);
  blob.Write(3, "def");
  blob.Publish();
  EXPECT_EQ(TextOf(kEtag), "abcdef");
}

TEST_F(PartialBlobTest, BytesWithoutSavedStateAreFetchedAgain) {
  {
    PartialBlob blob(directory_.path(), kEtag, 6, true);
    blob.Write(0, "abc");
  }
  EXPECT_EQ(StoredBytes(directory_.path(), kEtag, 6), 0);
}

TEST_F(PartialBlobTest, LargestPartIsContinuedAndTheOthersRemoved) {
  Store("00000001", "ab", 6, 1, "other");
  Store("00000002", "abcd", 6, 1, "other");
  Store("00000003", "abc", 6, 1, "other");
  const PartialBlob blob(directory_.path(), kEtag, 6, true);
  EXPECT_EQ(blob.ranges().prefix(), 4);
  EXPECT_EQ(Names(), (std::vector<std::string>{kEtag + ".00000002.vllmcli-part", kEtag + ".00000002.vllmcli-state"}));
}

TEST_F(PartialBlobTest, StateOfAnotherSizeOrOfAShorterFileIsIgnored) {
  Store("00000001", "abcd", 7, 1, "other");
  Store("00000002", "abcd", 6, 1, "other");
  directory_.Write(kEtag + ".00000002.vllmcli-part", "ab");
  const PartialBlob blob(directory_.path(), kEtag, 6, true);
  EXPECT_FALSE(blob.is_resumed());
}

TEST_F(PartialBlobTest, WithoutALockAPartOfARunningOrRemoteProcessIsLeftAlone) {
  Store("00000001", "abcd", 6, getpid(), HostName());
  Store("00000002", "abcd", 6, 1, "other");
  const PartialBlob blob(directory_.path(), kEtag, 6, false);
  EXPECT_FALSE(blob.is_resumed());
  EXPECT_EQ(Names().size(), 5u);
}

TEST_F(PartialBlobTest, WithoutALockAPartOfAnEndedProcessIsContinued) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  Store("00000001", "abcd", 6, child, HostName());
  const PartialBlob blob(directory_.path(), kEtag, 6, false);
  EXPECT_TRUE(blob.is_resumed());
}

TEST_F(PartialBlobTest, RestartForgetsTheBytes) {
  Store("00000001", "xxxx", 6, 1, "other");
  PartialBlob blob(directory_.path(), kEtag, 6, true);
  blob.Restart();
  EXPECT_FALSE(blob.is_resumed());
  EXPECT_EQ(StoredBytes(directory_.path(), kEtag, 6), 0);
  blob.Write(0, "abcdef");
  blob.Publish();
  EXPECT_EQ(TextOf(kEtag), "abcdef");
}

TEST_F(PartialBlobTest, NothingIsLeftWithoutBytes) {
  { const PartialBlob blob(directory_.path(), kEtag, 6, true); }
  EXPECT_EQ(Names(), std::vector<std::string>());
  PartialBlob blob(directory_.path(), kEtag, 6, true);
  blob.Write(0, "abc");
  blob.SaveState();
  blob.Discard();
  EXPECT_EQ(Names(), std::vector<std::string>());
}

TEST_F(PartialBlobTest, OldPartsAreRemovedUnlessTheirLockIsHeld) {
  const TempDirectory locks;
  const std::string held(64, 'a');
  const std::string old_part = directory_.Write(kEtag + ".00000001.vllmcli-part", "x");
  const std::string held_part = directory_.Write(held + ".00000001.vllmcli-part", "x");
  const std::string new_part = directory_.Write(kEtag + ".00000002.vllmcli-part", "x");
  const std::string foreign = directory_.Write(kEtag + ".12345678.incomplete", "x");
  for (const std::string& path : {old_part, held_part, foreign}) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(8 * 24));
  }
  BlobLock lock(locks.path() + "/" + held + ".lock");
  ASSERT_TRUE(lock.TryLock());
  RemoveOldPartialBlobs(directory_.path(), locks.path());
  EXPECT_FALSE(fs::exists(old_part));
  EXPECT_TRUE(fs::exists(held_part));
  EXPECT_TRUE(fs::exists(new_part));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(PartialBlobTest, ActivityChangesWithTheFilesOfTheBlob) {
  const int64_t before = DownloadActivity(directory_.path(), kEtag);
  directory_.Write(kEtag + ".12345678.incomplete", "x");
  const int64_t after = DownloadActivity(directory_.path(), kEtag);
  EXPECT_NE(before, after);
  EXPECT_EQ(after, DownloadActivity(directory_.path(), kEtag));
}

}  // namespace
}  // namespace vllm::app
