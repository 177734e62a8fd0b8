// Tests which directories and files the store does not trust, and what happens when it cannot write.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <functional>

#include "engine/config/errors.h"
#include "tests/kv_store/kv_store_test_util.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;

class KVStoreAccessTest : public KVStoreTest {
 protected:
  std::string DirectoryError() const {
    return MessageOf<ModelError>([&] { KVBlockStore store(Options()); });
  }
  // Expects that a store reads no block, gives one warning that contains `why`, and still works.
  void ExpectUntrustedSegment(const std::string& why) const {
    KVBlockStore store(Options());
    EXPECT_EQ(store.num_blocks(), 0);
    const std::string warning = store.TakeWarning();
    EXPECT_NE(warning.find("KV disk cache " + directory_ + "/"), std::string::npos) << warning;
    EXPECT_NE(warning.find(why), std::string::npos) << warning;
    EXPECT_TRUE(Write(store, 100));
    store.Refresh();
    EXPECT_EQ(Find(store, 100), Found::kYes);
    EXPECT_EQ(store.TakeWarning(), "");
  }
  std::string path() const { return PathOf(Segments().at(0)); }
};

TEST_F(KVStoreAccessTest, DirectoryAndFilesAreAccessibleToTheirOwnerOnly) {
  WriteRange(1, 1);
  struct stat status {};
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0700u);
  for (const auto& entry : fs::directory_iterator(directory_)) {
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777u, 0600u) << entry.path();
  }
}

TEST_F(KVStoreAccessTest, DirectoryThatOthersMayAccessIsRejected) {
  WriteRange(1, 1);
  for (const mode_t mode : {0750u, 0701u, 0704u, 0777u}) {
    ASSERT_EQ(chmod(directory_.c_str(), mode), 0);
    EXPECT_NE(DirectoryError().find("not used: accessible by group or others (mode 0"), std::string::npos);
    EXPECT_NE(DirectoryError().find("run chmod 700 on it"), std::string::npos);
  }
}

TEST_F(KVStoreAccessTest, SymbolicLinkToADirectoryIsRejected) {
  WriteRange(1, 1);
  const std::string real = directory_ + ".real";
  fs::rename(directory_, real);
  fs::create_directory_symlink(real, directory_);
  EXPECT_NE(DirectoryError().find("not used: not a directory (a symbolic link)"), std::string::npos);
}

TEST_F(KVStoreAccessTest, DirectoryOfAnotherUserIsRejected) {
  WriteRange(1, 1);
  if (chown(directory_.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root: only root can change owners";
  EXPECT_NE(DirectoryError().find("not used: belongs to another user (uid 12345)"), std::string::npos);
}

TEST_F(KVStoreAccessTest, DirectoryThatCannotBeCreatedIsAResourceError) {
  temp_.Write("cache", "a file");
  EXPECT_NE(MessageOf<ResourceError>([&] { KVBlockStore store(Options()); }).find("cannot be created"),
            std::string::npos);
}

TEST_F(KVStoreAccessTest, SegmentThatOthersMayAccessIsNotUsed) {
  WriteRange(1, 3);
  for (const auto& [mode, text] : {std::pair(0644u, "(mode 0644)"), std::pair(0622u, "(mode 0622)")}) {
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
    KVBlockStore store(Options());
    EXPECT_EQ(store.num_blocks(), 0);
    EXPECT_NE(store.TakeWarning().find(text), std::string::npos);
  }
  ExpectUntrustedSegment("not used: accessible by group or others");
}

TEST_F(KVStoreAccessTest, SegmentOfAnotherUserIsNotUsed) {
  WriteRange(1, 3);
  if (chown(path().c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root: only root can change owners";
  ExpectUntrustedSegment("not used: belongs to another user (uid 12345)");
}

TEST_F(KVStoreAccessTest, SegmentWhoseModeChangesWhileTheStoreIsOpenIsNotUsed) {
  WriteRange(1, 3);
  KVBlockStore store(Options());
  ASSERT_EQ(chmod(path().c_str(), 0644), 0);
  EXPECT_EQ(Find(store, 1), Found::kNo);
  EXPECT_NE(store.TakeWarning().find("mode 0644"), std::string::npos);
  EXPECT_EQ(Find(store, 2), Found::kNo);
  EXPECT_EQ(store.TakeWarning(), "");
}

TEST_F(KVStoreAccessTest, SymbolicLinkToASegmentIsNotUsed) {
  WriteRange(1, 3);
  const std::string real = temp_.path() + "/real";
  const std::string link = path();
  fs::rename(link, real);
  fs::create_symlink(real, link);
  ExpectUntrustedSegment("not used: not a regular file (a symbolic link)");
  EXPECT_TRUE(fs::exists(real));
}

TEST_F(KVStoreAccessTest, FifoIsNotUsedAndDoesNotBlock) {
  KVBlockStore{Options()};
  ASSERT_EQ(mkfifo(PathOf("0123456789abcdef.kvseg").c_str(), 0600), 0);
  ExpectUntrustedSegment("not used: not a regular file (a FIFO)");
}

TEST_F(KVStoreAccessTest, DirectoryWithTheNameOfASegmentIsNotUsed) {
  KVBlockStore{Options()};
  ASSERT_EQ(mkdir(PathOf("0123456789abcdef.kvseg").c_str(), 0700), 0);
  ExpectUntrustedSegment("not used: not a regular file (a directory)");
}

TEST_F(KVStoreAccessTest, SeveralUntrustedFilesGiveOneWarning) {
  KVBlockStore{Options()};
  for (const char* name : {"0000000000000001.kvseg", "0000000000000002.kvseg", "0000000000000003.kvseg"}) {
    ASSERT_EQ(mkfifo(PathOf(name).c_str(), 0600), 0);
  }
  ExpectUntrustedSegment("0000000000000001.kvseg");
}

TEST_F(KVStoreAccessTest, LockFileThatIsNotARegularFileTurnsWritingOffButNotReading) {
  for (const bool is_fifo : {false, true}) {
    fs::remove_all(directory_);
    WriteRange(1, 3);
    ASSERT_TRUE(fs::remove(PathOf("lock")));
    if (is_fifo) {
      ASSERT_EQ(mkfifo(PathOf("lock").c_str(), 0600), 0);
    } else {
      fs::create_symlink(temp_.path() + "/target", PathOf("lock"));
    }
    KVBlockStore store(Options());
    EXPECT_FALSE(Write(store, 4));
    EXPECT_NE(store.TakeWarning().find("nothing more is written"), std::string::npos);
    EXPECT_EQ(store.TakeWarning(), "");
    EXPECT_EQ(Find(store, 3), Found::kYes);
    EXPECT_FALSE(fs::exists(temp_.path() + "/target"));
  }
}

TEST_F(KVStoreAccessTest, WriteErrorTurnsWritingOffButNotReading) {
  payload_bytes_ = 4096;
  KVBlockStore store(Options());
  for (int32_t number = 1; number <= 3; ++number) ASSERT_TRUE(Write(store, number));
  rlimit saved{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &saved), 0);
  // The fourth block fits in part.
  const rlimit limited{4096 + 3 * 4096 + 1000, saved.rlim_max};
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const bool is_written = Write(store, 4);
  setrlimit(RLIMIT_FSIZE, &saved);
  signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(is_written);
  EXPECT_FALSE(store.is_writing_on());
  const std::string warning = store.TakeWarning();
  EXPECT_EQ(warning, "KV disk cache " + directory_ + ": nothing more is written: File too large");
  EXPECT_FALSE(Write(store, 5));
  EXPECT_EQ(store.TakeWarning(), "");
  EXPECT_EQ(fs::file_size(path()), 4096u + 3 * 4096u);
  for (int32_t number = 1; number <= 3; ++number) EXPECT_EQ(Find(store, number), Found::kYes);
  // Another process can use the segment.
  KVBlockStore other(Options());
  EXPECT_TRUE(Write(other, 4));
  EXPECT_EQ(Segments().size(), 1u);
}

// Runs `body` in a process where `directory` is a new file system of 1 MB. Returns its result, or -1 if that is not
// possible.
int InSmallFileSystem(const std::string& directory, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", directory.c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) {
      _exit(255);
    }
    _exit(body());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -2;
  return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

TEST_F(KVStoreAccessTest, FullDiskTurnsWritingOffButNotReading) {
  fs::create_directories(directory_);
  payload_bytes_ = 50000;
  max_bytes_ = int64_t{1} << 30;
  const int result = InSmallFileSystem(directory_, [&] {
    KVBlockStore store(Options());
    int32_t num_written = 0;
    while (num_written < 100 && Write(store, num_written + 1)) ++num_written;
    if (num_written < 15 || num_written > 21 || store.is_writing_on()) return 1;
    if (store.TakeWarning().find("nothing more is written: No space left on device") == std::string::npos) return 2;
    if (!store.TakeWarning().empty()) return 3;
    for (int32_t number = 1; number <= num_written; ++number) {
      if (Find(store, number) != Found::kYes) return 4;
    }
    KVBlockStore next(Options());
    return next.num_blocks() == num_written && Find(next, num_written) == Found::kYes ? 0 : 5;
  });
  if (result == -1) GTEST_SKIP() << "needs root: cannot mount a tmpfs";
  EXPECT_EQ(result, 0);
}

TEST_F(KVStoreAccessTest, ReadOnlyFileSystemIsReadable) {
  fs::create_directories(directory_);
  const int result = InSmallFileSystem(directory_, [&] {
    {
      KVBlockStore writer(Options());
      Write(writer, 1);
    }
    if (mount("none", directory_.c_str(), "", MS_REMOUNT | MS_RDONLY, nullptr) != 0) return 255;
    KVBlockStore store(Options());
    if (store.TakeWarning().find("Read-only file system") == std::string::npos) return 1;
    if (Write(store, 2)) return 2;
    return Find(store, 1) == Found::kYes ? 0 : 3;
  });
  if (result == -1) GTEST_SKIP() << "needs root: cannot mount a tmpfs";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace vllm
