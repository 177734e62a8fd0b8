// Tests HistoryFile: its format, permissions, symbolic links, concurrent writers and shortening.
#include "app/editor/history_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"
#include "tests/support/thread_state.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

class HistoryFileTest : public testing::Test {
 protected:
  std::string OpenError() const {
    return MessageOf<ResourceError>([&] { HistoryFile history(path_); });
  }
  mode_t Mode() const {
    struct stat status {};
    EXPECT_EQ(stat(path_.c_str(), &status), 0);
    return status.st_mode & 07777u;
  }
  Lines Names() const {
    Lines names;
    for (const auto& entry : fs::directory_iterator(temp_.path())) names.push_back(entry.path().filename().string());
    return names;
  }

  TempDirectory temp_;
  std::string path_ = temp_.path() + "/history";
};

TEST_F(HistoryFileTest, EntriesWithSeveralLinesOrLinesThatLookLikeTimestampsRoundTrip) {
  const Lines lines = {"one", "two\nthree\n\nfour", "#12 is a number", "a\n#7\n\\#8\n\\\\#9", "\\", "#", "last"};
  {
    HistoryFile history(path_);
    EXPECT_EQ(history.entries(), Lines());
    for (const std::string& line : lines) history.Append(line);
  }
  EXPECT_EQ(HistoryFile(path_).entries(), lines);
}

TEST_F(HistoryFileTest, FileWrittenByReadlineIsRead) {
  temp_.Write("history", "#1700000000\nfirst\n#1700000001\nsecond\nof two lines\n");
  EXPECT_EQ(HistoryFile(path_).entries(), (Lines{"first", "second\nof two lines"}));
  temp_.Write("history", "no\ntimes\n");
  EXPECT_EQ(HistoryFile(path_).entries(), (Lines{"no", "times"}));
}

TEST_F(HistoryFileTest, FileReadableByOthersIsMadePrivate) {
  temp_.Write("history", "#1\nsecret\n");
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  const HistoryFile history(path_);
  EXPECT_EQ(Mode(), 0600u);
}

TEST_F(HistoryFileTest, NewFileIsPrivateEvenWithUmaskZero) {
  const mode_t mask = umask(0);
  { const HistoryFile history(path_); }
  umask(mask);
  EXPECT_EQ(Mode(), 0600u);
}

TEST_F(HistoryFileTest, SymbolicLinkIsNotFollowed) {
  const std::string target = temp_.Write("target", "#1\nline\n");
  ASSERT_EQ(chmod(target.c_str(), 0644), 0);
  fs::create_symlink(target, path_);
  EXPECT_NE(OpenError().find("is a symbolic link"), std::string::npos) << OpenError();
  struct stat status {};
  ASSERT_EQ(stat(target.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0644u);
}

TEST_F(HistoryFileTest, FifoIsRejectedWithoutBlocking) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(OpenError().find("not a regular file (a FIFO)"), std::string::npos) << OpenError();
}

// A symbolic link replaces the file between two calls of Append. The second entry goes to the open file, not to the
// target of the link.
TEST_F(HistoryFileTest, LaterEntryDoesNotFollowASymbolicLinkThatReplacedTheFile) {
  HistoryFile history(path_);
  history.Append("one");
  const std::string target = temp_.Write("target", "untouched");
  fs::rename(path_, temp_.path() + "/moved");
  fs::create_symlink(target, path_);
  history.Append("two");
  EXPECT_EQ(HistoryFile(temp_.path() + "/moved").entries(), (Lines{"one", "two"}));
  std::ifstream file(target);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "untouched");
}

TEST_F(HistoryFileTest, LongFileIsShortenedToItsNewestEntriesWhenOpened) {
  {
    HistoryFile history(path_, 5);
    for (int i = 0; i < 11; ++i) history.Append("line " + std::to_string(i) + "\nand more");
  }
  const Lines newest = {"line 6\nand more", "line 7\nand more", "line 8\nand more", "line 9\nand more",
                        "line 10\nand more"};
  EXPECT_EQ(HistoryFile(path_, 5).entries(), newest);
  EXPECT_EQ(HistoryFile(path_).entries(), newest);
  EXPECT_EQ(Mode(), 0600u);
  EXPECT_EQ(Names(), (Lines{"history"}));
}

TEST_F(HistoryFileTest, EntryAppendedAfterAnotherProcessShortenedTheFileIsKept) {
  HistoryFile first(path_, 2);
  for (int i = 0; i < 5; ++i) first.Append(std::to_string(i));
  HistoryFile second(path_, 2);
  EXPECT_EQ(second.entries(), (Lines{"3", "4"}));
  first.Append("by first");
  second.Append("by second");
  EXPECT_EQ(HistoryFile(path_).entries(), (Lines{"3", "4", "by first", "by second"}));
}

TEST_F(HistoryFileTest, EntryAppendedWhileAnotherProcessReplacesTheFileIsKept) {
  HistoryFile history(path_);
  history.Append("old");
  const int lock = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  std::ofstream(path_ + ".new") << "#1\nold\n";
  std::atomic<bool> is_done{false};
  std::atomic<pid_t> id{0};
  std::thread writer([&] {
    id = gettid();
    history.Append("new");
    is_done = true;
  });
  while (!is_done && (id == 0 || !testing_support::ThreadSleeps(id))) std::this_thread::yield();
  fs::rename(path_ + ".new", path_);
  close(lock);
  writer.join();
  EXPECT_EQ(HistoryFile(path_).entries(), (Lines{"old", "new"}));
}

TEST_F(HistoryFileTest, ConcurrentWritersLoseNoEntry) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([this] {
      HistoryFile history(path_);
      for (int i = 0; i < 200; ++i) history.Append(std::string(300, 'x'));
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(HistoryFile(path_).entries(), Lines(800, std::string(300, 'x')));
}

TEST_F(HistoryFileTest, OnlyTheEndOfAHugeFileIsRead) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "#1\n" + std::string(1 << 20, static_cast<char>('a' + i)) + "\n";
  temp_.Write("history", text);
  const HistoryFile history(path_);
  EXPECT_EQ(history.entries().size(), 15u);
  EXPECT_EQ(history.entries().front(), std::string(1 << 20, 'f'));
}

}  // namespace
}  // namespace vllm::app
