#include "app/hub/hub_cache.h"

#include <gtest/gtest.h>

#include "tests/pull/environment.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'a');

// The variables that decide where the cache is.
struct CacheVariables {
  ScopedVariable hub_cache{"HF_HUB_CACHE", nullptr};
  ScopedVariable old_hub_cache{"HUGGINGFACE_HUB_CACHE", nullptr};
  ScopedVariable hf_home{"HF_HOME", nullptr};
  ScopedVariable xdg{"XDG_CACHE_HOME", nullptr};
  ScopedVariable home{"HOME", "/home/u"};
};

TEST(HubCacheTest, FirstVariableThatIsSetCounts) {
  const CacheVariables none;
  EXPECT_EQ(HubCacheDirectory(), "/home/u/.cache/huggingface/hub");
  const ScopedVariable xdg("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(HubCacheDirectory(), "/x/huggingface/hub");
  const ScopedVariable hf_home("HF_HOME", "~/hf");
  EXPECT_EQ(HubCacheDirectory(), "/home/u/hf/hub");
  const ScopedVariable old_cache("HUGGINGFACE_HUB_CACHE", "/old");
  EXPECT_EQ(HubCacheDirectory(), "/old");
  const ScopedVariable cache("HF_HUB_CACHE", "/c");
  EXPECT_EQ(HubCacheDirectory(), "/c");
  EXPECT_EQ(HubHome(), "/home/u/hf");
}

TEST(HubCacheTest, RepositoriesHaveDashesForTheSlash) {
  EXPECT_EQ(RepositoryDirectory("/c", "a/b"), "/c/models--a--b");
  EXPECT_EQ(RepositoryDirectory("/c", "gpt2"), "/c/models--gpt2");
}

TEST(HubCacheTest, SnapshotIsThatOfTheRef) {
  const TempDirectory directory;
  fs::create_directories(directory.path() + "/snapshots/" + kCommit);
  fs::create_directories(directory.path() + "/snapshots/" + std::string(40, 'b'));
  fs::create_directories(directory.path() + "/refs/pr");
  directory.Write("refs/main", kCommit + "\n");
  directory.Write("refs/pr/1", std::string(40, 'b'));
  EXPECT_EQ(FindSnapshot(directory.path(), ""), directory.path() + "/snapshots/" + kCommit);
  EXPECT_EQ(FindSnapshot(directory.path(), "pr/1"), directory.path() + "/snapshots/" + std::string(40, 'b'));
  EXPECT_EQ(FindSnapshot(directory.path(), kCommit), directory.path() + "/snapshots/" + kCommit);
  EXPECT_EQ(FindSnapshot(directory.path(), "v2"), std::nullopt);
  EXPECT_EQ(FindSnapshot(directory.path(), std::string(40, 'c')), std::nullopt);
}

TEST(HubCacheTest, OnlySnapshotNeedsNoRef) {
  const TempDirectory directory;
  EXPECT_EQ(FindSnapshot(directory.path(), ""), std::nullopt);
  fs::create_directories(directory.path() + "/snapshots/" + kCommit);
  EXPECT_EQ(FindSnapshot(directory.path(), ""), directory.path() + "/snapshots/" + kCommit);
  EXPECT_EQ(FindSnapshot(directory.path(), "main"), std::nullopt);
  fs::create_directories(directory.path() + "/snapshots/" + std::string(40, 'b'));
  EXPECT_EQ(FindSnapshot(directory.path(), ""), std::nullopt);
}

TEST(HubCacheTest, RefsThatLeadOutOfTheCacheAreIgnored) {
  const TempDirectory directory;
  fs::create_directories(directory.path() + "/refs");
  for (const char* text : {"..", "../..", "/etc", "a/b", "", "\n"}) {
    directory.Write("refs/main", text);
    EXPECT_EQ(CachedCommit(directory.path(), ""), std::nullopt) << text;
  }
  EXPECT_EQ(CachedCommit(directory.path(), "../refs/main"), std::nullopt);
}

}  // namespace
}  // namespace vllm::app
