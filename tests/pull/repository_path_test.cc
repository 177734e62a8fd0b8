#include "app/hub/repository_path.h"

#include <gtest/gtest.h>

#include <string>

namespace vllm::app {
namespace {

TEST(RepositoryPathTest, PathsBelowTheRootAreSafe) {
  for (const char* path : {"config.json", "a/b/c", "..a", "a..", ".gitattributes", "with space", "\xc3\xa9"}) {
    EXPECT_TRUE(IsSafeRepositoryPath(path)) << path;
  }
}

TEST(RepositoryPathTest, PathsThatLeadOutAreUnsafe) {
  for (const char* path : {"", "/", "/a", "..", "../a", "a/..", "a/../b", ".", "./a", "a/./b", "a//b", "a/", "a\\b",
                           "C:a", "c:/a", "a\nb", "a\x7f", "\x1b[2J", "\xff"}) {
    EXPECT_FALSE(IsSafeRepositoryPath(path)) << path;
  }
  EXPECT_FALSE(IsSafeRepositoryPath(std::string_view("a\0b", 3)));
}

TEST(RepositoryPathTest, LengthsAreBounded) {
  EXPECT_TRUE(IsSafeRepositoryPath(std::string(255, 'a')));
  EXPECT_FALSE(IsSafeRepositoryPath(std::string(256, 'a')));
  std::string path;
  for (int i = 0; i < 512; ++i) path += "a/";
  EXPECT_TRUE(IsSafeRepositoryPath(path + "a") == (path.size() + 1 <= 1024));
}

TEST(RepositoryPathTest, CommitsAreFortyHexadecimalDigits) {
  EXPECT_TRUE(IsCommit(std::string(40, 'a')));
  EXPECT_FALSE(IsCommit(std::string(39, 'a')));
  EXPECT_FALSE(IsCommit(std::string(40, 'A')));
  EXPECT_FALSE(IsCommit(std::string(40, 'g')));
}

TEST(RepositoryPathTest, RevisionsAreNamesOfGit) {
  for (const char* revision : {"main", "v1.0", "refs/pr/1", "feature/x"}) EXPECT_TRUE(IsRevision(revision)) << revision;
  for (const char* revision : {"", "-x", "a b", "a:b", "a^", "a~1", "..", "a/../b", "a?b", "a#b"}) {
    EXPECT_FALSE(IsRevision(revision)) << revision;
  }
}

}  // namespace
}  // namespace vllm::app
