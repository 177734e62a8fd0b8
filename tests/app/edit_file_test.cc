#include "app/cli/edit_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLimit = 1000;

std::string ContentsOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

mode_t ModeOf(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

std::string AddLine(const std::string& text) { return text + "line\n"; }

TEST(EditFileTest, AMissingFileIsCreatedForTheUserAlone) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/new/file";
  EditFile(path, kLimit, AddLine);
  EXPECT_EQ(ContentsOf(path), "line\n");
  EXPECT_EQ(ModeOf(path), 0600u);
  EXPECT_EQ(ModeOf(directory.path() + "/new"), 0700u);
}

TEST(EditFileTest, TheModeStays) {
  const TempDirectory directory;
  const std::string path = directory.Write("file", "a\n");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EditFile(path, kLimit, AddLine);
  EXPECT_EQ(ContentsOf(path), "a\nline\n");
  EXPECT_EQ(ModeOf(path), 0640u);
}

TEST(EditFileTest, ASymbolicLinkStaysAndItsFileChanges) {
  const TempDirectory directory;
  fs::create_directory(directory.path() + "/dotfiles");
  const std::string target = directory.Write("dotfiles/file", "a\n");
  const std::string link = directory.path() + "/link";
  fs::create_symlink("dotfiles/file", link);
  EditFile(link, kLimit, AddLine);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ContentsOf(target), "a\nline\n");
}

TEST(EditFileTest, ALinkThatLeadsNowhereIsAnError) {
  const TempDirectory directory;
  const std::string link = directory.path() + "/link";
  fs::create_symlink("missing", link);
  EXPECT_EQ(MessageOf<ConfigError>([&] { EditFile(link, kLimit, AddLine); }),
            "cannot write " + link + ": the symbolic link leads to no file");
}

TEST(EditFileTest, AnEditThatThrowsChangesNothing) {
  const TempDirectory directory;
  const std::string path = directory.Write("file", "a\n");
  EXPECT_THROW(EditFile(path, kLimit, [](const std::string&) -> std::string { throw ConfigError("no"); }), ConfigError);
  EXPECT_EQ(ContentsOf(path), "a\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()), 1);
}

TEST(EditFileTest, AFileThatIsTooLongOrADirectoryIsRejected) {
  const TempDirectory directory;
  const std::string path = directory.Write("file", std::string(kLimit + 1, 'a'));
  EXPECT_THROW(EditFile(path, kLimit, AddLine), ConfigError);
  EXPECT_THROW(EditFile(directory.path(), kLimit, AddLine), ConfigError);
}

TEST(EditFileTest, ConcurrentEditsAreAllKept) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/file";
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10; ++k) EditFile(path, kLimit, AddLine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ContentsOf(path).size(), 80 * std::string("line\n").size());
}

}  // namespace
}  // namespace vllm::app
