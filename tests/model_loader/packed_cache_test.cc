// Tests the directory of packed weights: which files are evicted, what a failed or killed writer leaves behind, and
// which directories are not trusted.
#include "engine/model_loader/packed_cache/packed_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/mapped_file.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;

class PackedCacheTest : public testing::Test {
 protected:
  static void Put(const PackedCache& cache, const std::string& key, size_t bytes, char fill = 'x') {
    cache.Put(key, static_cast<int64_t>(bytes), [&](int fd, const std::string& /*path*/) {
      const std::string data(bytes, fill);
      ASSERT_EQ(write(fd, data.data(), bytes), static_cast<ssize_t>(bytes));
    });
  }
  // Sets the file's time of last use to `minutes` ago.
  void SetAge(const std::string& name, int minutes) const {
    fs::last_write_time(directory_ + "/" + name, fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) names.insert(entry.path().filename().string());
    return names;
  }

  TempDirectory temp_;
  std::string directory_ = temp_.path() + "/cache/vllmcli/packed";
};

using NameSet = std::set<std::string>;

TEST_F(PackedCacheTest, DirectoryAndFilesAreAccessibleToTheirOwnerOnly) {
  Put(PackedCache(directory_, 1000), "a", 10);
  struct stat status;
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0700u);
  ASSERT_EQ(stat((directory_ + "/a.packed").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST_F(PackedCacheTest, EvictsLeastRecentlyUsedFilesAndNoMoreThanNeeded) {
  const PackedCache cache(directory_, 1000);
  for (const char* key : {"a", "b", "c"}) Put(cache, key, 300);
  SetAge("a.packed", 3);
  SetAge("b.packed", 2);
  SetAge("c.packed", 1);
  ASSERT_TRUE(cache.OpenFile("a"));
  Put(cache, "d", 400);
  EXPECT_EQ(Names(), (NameSet{"a.packed", "c.packed", "d.packed"}));
  Put(cache, "e", 1000);
  EXPECT_EQ(Names(), (NameSet{"e.packed"}));
}

TEST_F(PackedCacheTest, ReplacedFileIsNotCountedTwice) {
  const PackedCache cache(directory_, 1000);
  Put(cache, "a", 600);
  Put(cache, "b", 300);
  SetAge("b.packed", 9);
  Put(cache, "a", 700);
  EXPECT_EQ(Names(), (NameSet{"a.packed", "b.packed"}));
}

TEST_F(PackedCacheTest, OtherFilesInTheDirectoryAreKept) {
  const PackedCache cache(directory_, 100);
  Put(cache, "a", 50);
  temp_.Write("cache/vllmcli/packed/notes.txt", std::string(5000, 'n'));
  Put(cache, "b", 100);
  EXPECT_EQ(Names(), (NameSet{"b.packed", "notes.txt"}));
}

TEST_F(PackedCacheTest, MappedFileStaysReadableAfterItIsReplacedOrDeleted) {
  const PackedCache cache(directory_, 100);
  Put(cache, "a", 100, 'o');
  const MappedFile first(cache.PathOf("a"));
  Put(cache, "a", 100, 'n');
  const MappedFile second(cache.PathOf("a"));
  Put(cache, "b", 100);
  EXPECT_EQ(Names(), (NameSet{"b.packed"}));
  EXPECT_EQ(static_cast<char>(first.bytes()[99]), 'o');
  EXPECT_EQ(static_cast<char>(second.bytes()[99]), 'n');
}

TEST_F(PackedCacheTest, FailedWriterLeavesOnlyTheOldFile) {
  const PackedCache cache(directory_, 100);
  Put(cache, "a", 40, 'o');
  const auto fail = [](int fd, const std::string&) {
    ASSERT_EQ(write(fd, "half", 4), 4);
    throw ResourceError("disk full");
  };
  EXPECT_EQ(MessageOf<ResourceError>([&] { cache.Put("a", 40, fail); }), "disk full");
  EXPECT_EQ(Names(), (NameSet{"a.packed"}));
  EXPECT_EQ(static_cast<char>(MappedFile(cache.PathOf("a")).bytes()[0]), 'o');
}

TEST_F(PackedCacheTest, DeletesFilesOfKilledWritersButNotFilesBeingWritten) {
  const PackedCache cache(directory_, 100);
  Put(cache, "a", 10);
  temp_.Write("cache/vllmcli/packed/k.unfinished-abcdef", std::string(50, 'k'));
  const std::string busy = temp_.Write("cache/vllmcli/packed/k.unfinished-ghijkl", std::string(50, 'k'));
  const int fd = open(busy.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  Put(cache, "b", 40);
  EXPECT_EQ(Names(), (NameSet{"a.packed", "b.packed", "k.unfinished-ghijkl"}));
  close(fd);
}

TEST_F(PackedCacheTest, TwoWritersOfOneKeySucceedAndTheLastWins) {
  const PackedCache cache(directory_, 1000);
  cache.Put("a", 5, [&](int fd, const std::string& /*path*/) {
    Put(cache, "a", 5, 'i');
    ASSERT_EQ(write(fd, "outer", 5), 5);
  });
  EXPECT_EQ(Names(), (NameSet{"a.packed"}));
  EXPECT_EQ(static_cast<char>(MappedFile(cache.PathOf("a")).bytes()[0]), 'o');
}

TEST_F(PackedCacheTest, ConcurrentWritersDoNotDeleteEachOthersFiles) {
  const PackedCache cache(directory_, 1 << 20);
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&cache, writer] {
      for (int i = 0; i < 100; ++i) EXPECT_NO_THROW(Put(cache, std::to_string(writer) + "_" + std::to_string(i), 10));
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Names().size(), 400u);
}

TEST_F(PackedCacheTest, DirectoryThatCannotBeCreatedIsAnError) {
  temp_.Write("file", "");
  const PackedCache cache(temp_.path() + "/file/packed", 1000);
  const std::string message = MessageOf<ResourceError>([&] { Put(cache, "a", 10); });
  EXPECT_NE(message.find("cannot be created"), std::string::npos) << message;
}

TEST_F(PackedCacheTest, DirectoryWritableByOthersIsNeitherReadNorWritten) {
  const PackedCache cache(directory_, 1000);
  Put(cache, "a", 10);
  for (const mode_t mode : {0777u, 0770u, 0707u}) {
    ASSERT_EQ(chmod(directory_.c_str(), mode), 0);
    const std::string message = MessageOf<ModelError>([&] { cache.OpenFile("a"); });
    EXPECT_NE(message.find("not used: writable by group or others (mode 0"), std::string::npos) << message;
    EXPECT_EQ(MessageOf<ModelError>([&] { Put(cache, "b", 10); }), message);
  }
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_TRUE(cache.OpenFile("a"));
  EXPECT_EQ(Names(), (NameSet{"a.packed"}));
}

TEST_F(PackedCacheTest, DirectoryOrFileOfAnotherUserIsRejected) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: only root can change the owner of a directory";
  const PackedCache cache(directory_, 1000);
  Put(cache, "a", 10);
  ASSERT_EQ(chown(directory_.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  const std::string message = MessageOf<ModelError>([&] { cache.OpenFile("a"); });
  EXPECT_NE(message.find("belongs to another user (uid 12345)"), std::string::npos) << message;
  ASSERT_EQ(chown(directory_.c_str(), 0, static_cast<gid_t>(-1)), 0);
  ASSERT_EQ(chown(cache.PathOf("a").c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_NE(MessageOf<ModelError>([&] { cache.OpenFile("a"); }).find("belongs to another user"), std::string::npos);
}

TEST_F(PackedCacheTest, SymbolicLinkToADirectoryIsRejected) {
  Put(PackedCache(temp_.path() + "/real", 1000), "a", 10);
  fs::create_symlink(temp_.path() + "/real", temp_.path() + "/link");
  const PackedCache cache(temp_.path() + "/link", 1000);
  const std::string message = MessageOf<ModelError>([&] { cache.OpenFile("a"); });
  EXPECT_NE(message.find("not a directory (a symbolic link)"), std::string::npos) << message;
  EXPECT_EQ(MessageOf<ModelError>([&] { Put(cache, "b", 10); }), message);
}

TEST_F(PackedCacheTest, MissingDirectoryOrFileIsNotAnError) {
  const PackedCache cache(directory_, 1000);
  EXPECT_FALSE(cache.OpenFile("a"));
  Put(cache, "a", 10);
  EXPECT_FALSE(cache.OpenFile("b"));
}

}  // namespace
}  // namespace vllm
