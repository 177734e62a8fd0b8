#include "app/hub/pull/cache_files.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "tests/pull/environment.h"
#include "tests/support/temp_directory.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

class CacheFilesTest : public testing::Test {
 protected:
  std::string TextOf(const std::string& name) const {
    std::string text;
    tokenizer::ReadRegularFile(root() + "/" + name, 1000, text);
    return text;
  }
  const std::string& root() const { return directory_.path(); }

  TempDirectory directory_;
};

TEST_F(CacheFilesTest, LinksInSnapshotsAreRelative) {
  fs::create_directory(root() + "/blobs");
  const fs::path blob = directory_.Write("blobs/e", "x");
  PutIntoSnapshot(blob, root() + "/snapshots/c/f", false);
  PutIntoSnapshot(blob, root() + "/snapshots/c/d/f", false);
  EXPECT_EQ(fs::read_symlink(root() + "/snapshots/c/f"), "../../blobs/e");
  EXPECT_EQ(fs::read_symlink(root() + "/snapshots/c/d/f"), "../../../blobs/e");
  EXPECT_EQ(TextOf("snapshots/c/d/f"), "x");
}

TEST_F(CacheFilesTest, OldLinksAndFilesAreReplaced) {
  fs::create_directories(root() + "/blobs");
  fs::create_directories(root() + "/snapshots");
  const fs::path blob = directory_.Write("blobs/e", "new");
  directory_.Write("snapshots/f", "old");
  fs::create_symlink("/nowhere", root() + "/snapshots/g");
  for (const char* name : {"/snapshots/f", "/snapshots/g"}) {
    PutIntoSnapshot(blob, root() + name, false);
    EXPECT_EQ(fs::read_symlink(root() + name), "../blobs/e");
  }
}

TEST_F(CacheFilesTest, FileIsInTheSnapshotIfLinksAreDisabled) {
  const ScopedVariable disabled("HF_HUB_DISABLE_SYMLINKS", "1");
  fs::create_directory(root() + "/blobs");
  const fs::path blob = directory_.Write("blobs/e", "x");
  PutIntoSnapshot(blob, root() + "/s/copy", false);
  EXPECT_TRUE(fs::exists(blob));
  PutIntoSnapshot(blob, root() + "/s/moved", true);
  EXPECT_FALSE(fs::exists(blob));
  for (const char* name : {"s/copy", "s/moved"}) {
    EXPECT_FALSE(fs::is_symlink(root() + "/" + name));
    EXPECT_EQ(TextOf(name), "x");
  }
}

TEST_F(CacheFilesTest, FilesAreReplacedWithoutRemains) {
  ReplaceFile(root() + "/ref", "a", true);
  ReplaceFile(root() + "/ref", "b", false);
  EXPECT_EQ(TextOf("ref"), "b");
  EXPECT_EQ(tokenizer::NamesInDirectory(root()), std::vector<std::string>{"ref"});
}

TEST_F(CacheFilesTest, FileInTheWayOfADirectoryIsAnError) {
  directory_.Write("x", "");
  EXPECT_EQ(MessageOf<ResourceError>([&] { MakeCacheDirectory(root() + "/x/y"); }),
            "cannot create the directory " + root() + "/x/y: Not a directory");
}

TEST_F(CacheFilesTest, FreeSpaceIsThatOfTheNearestDirectory) {
  EXPECT_TRUE(FreeBytes(root() + "/not/yet"));
  EXPECT_TRUE(FreeBytes("relative/path"));
}

TEST_F(CacheFilesTest, OnlyRegularFilesHaveASize) {
  directory_.Write("f", "abc");
  fs::create_symlink("f", root() + "/link");
  EXPECT_EQ(RegularFileSize(root() + "/f"), 3);
  EXPECT_EQ(RegularFileSize(root() + "/link"), 3);
  EXPECT_EQ(RegularFileSize(root()), std::nullopt);
  EXPECT_EQ(RegularFileSize(root() + "/none"), std::nullopt);
}

}  // namespace
}  // namespace vllm::app
