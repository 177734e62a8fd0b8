// The cache that `vllmcli pull` writes and reads: its layout is that of huggingface_hub, byte for byte.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/hub/pull_test.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kModelPaths = {"config.json", "generation_config.json", "model.safetensors",
                                           "tokenizer.json", "tokenizer_config.json"};

class PullCacheTest : public PullTest {
 protected:
  PullCacheTest() : model_(MakeRepository("org/model", ModelFiles(300 * kKiB))) { server_.AddRepository(model_); }

  // Writes the files of the revision main into the cache as huggingface_hub does.
  void WriteAsHuggingfaceHub(const std::set<std::string>& paths) {
    const fs::path root = RepositoryInCache(model_.id);
    fs::create_directories(root / "blobs");
    fs::create_directories(root / "refs");
    for (const std::string& path : paths) {
      const testing_support::HubFile& file = model_.File(path);
      std::ofstream(root / "blobs" / file.etag(), std::ios::binary) << *file.bytes;
      fs::create_directories(Snapshot(model_));
      fs::create_symlink("../../blobs/" + file.etag(), Snapshot(model_) / path);
    }
    std::ofstream(root / "refs/main") << model_.CommitOf("main");
  }

  HubRepository model_;
};

TEST_F(PullCacheTest, AModelIsStoredAsHuggingfaceHubStoresIt) {
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, Snapshot(model_).string() + "\n");
  ExpectCached(model_, kModelPaths);
  EXPECT_EQ(Downloads(server_).size(), 5u);
}

TEST_F(PullCacheTest, ASecondPullDownloadsNothing) {
  const ProgramResult first = Pull({"org/model"});
  server_.ForgetRequests();
  const ProgramResult second = Pull({"org/model"});
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(Downloads(server_), std::vector<std::string>());
  EXPECT_NE(server_.Requests(), std::vector<std::string>());
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullCacheTest, FilesOfHuggingfaceHubAreNotDownloadedAgain) {
  WriteAsHuggingfaceHub(kModelPaths);
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, Snapshot(model_).string() + "\n");
  EXPECT_EQ(Downloads(server_), std::vector<std::string>());
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullCacheTest, OnlyMissingFilesAreDownloaded) {
  WriteAsHuggingfaceHub({"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"});
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  const std::vector<std::string> downloads = Downloads(server_);
  ASSERT_EQ(downloads.size(), 1u);
  EXPECT_NE(downloads[0].find("generation_config.json"), std::string::npos) << downloads[0];
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullCacheTest, ALinkWithoutItsBlobIsRepaired) {
  WriteAsHuggingfaceHub(kModelPaths);
  fs::remove(RepositoryInCache(model_.id) / "blobs" / model_.File("model.safetensors").etag());
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullCacheTest, ABlobOfTheWrongSizeIsDownloadedAgain) {
  WriteAsHuggingfaceHub(kModelPaths);
  fs::resize_file(RepositoryInCache(model_.id) / "blobs" / model_.File("model.safetensors").etag(), 1000);
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullCacheTest, ABlobOfTheRightSizeIsTrusted) {
  // As by huggingface_hub: hashing all files of the cache in every pull would take minutes.
  WriteAsHuggingfaceHub(kModelPaths);
  const fs::path blob = RepositoryInCache(model_.id) / "blobs" / model_.File("model.safetensors").etag();
  std::ofstream(blob, std::ios::binary) << std::string(300 * kKiB, 'x');
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Downloads(server_), std::vector<std::string>());
}

TEST_F(PullCacheTest, AMovedBranchFetchesOnlyChangedFiles) {
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  const std::string old_commit = model_.CommitOf("main");
  const fs::path old_snapshot = Snapshot(model_);
  std::map<std::string, std::string> files = ModelFiles(300 * kKiB);
  files["config.json"] = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 1})";
  model_.Commit(files);
  server_.AddRepository(model_);
  server_.ForgetRequests();
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, Snapshot(model_).string() + "\n");
  EXPECT_EQ(Downloads(server_).size(), 1u);
  EXPECT_EQ(ReadFile(RepositoryInCache(model_.id) / "refs/main"), model_.CommitOf("main"));
  EXPECT_EQ(ReadFile(Snapshot(model_) / "config.json"), files["config.json"]);
  EXPECT_TRUE(ReadFile(Snapshot(model_) / "model.safetensors") == files["model.safetensors"]);
  // The old snapshot stays usable.
  EXPECT_EQ(ReadFile(old_snapshot / "config.json"), ModelFiles(1)["config.json"]);
}

TEST_F(PullCacheTest, ARevisionIsABranchATagOrACommit) {
  const std::string first = model_.CommitOf("main");
  model_.tags["v1"] = first;
  model_.Commit(ModelFiles(100 * kKiB, 2), "refs/pr/1");
  server_.AddRepository(model_);
  EXPECT_EQ(Pull({"org/model", "--revision", "v1"}).out, Snapshot(model_, "v1").string() + "\n");
  ExpectCached(model_, kModelPaths, "v1");
  fs::remove_all(Cache());
  EXPECT_EQ(Pull({"org/model", "--revision", "refs/pr/1"}).out, Snapshot(model_, "refs/pr/1").string() + "\n");
  ExpectCached(model_, kModelPaths, "refs/pr/1");
  fs::remove_all(Cache());
  EXPECT_EQ(Pull({"org/model", "--revision", first}).out, Snapshot(model_, first).string() + "\n");
  ExpectCached(model_, kModelPaths, first);
}

TEST_F(PullCacheTest, UrlsOfTheHubAreNames) {
  model_.tags["v1"] = model_.CommitOf("main");
  server_.AddRepository(model_);
  const ProgramResult result = Pull({server_.endpoint() + "/org/model/tree/v1"});
  EXPECT_EQ(result.status, 0) << result.err;
  ExpectCached(model_, kModelPaths, "v1");
  fs::remove_all(Cache());
  EXPECT_EQ(Pull({"hf.co/org/model"}).status, 0);
  ExpectCached(model_, kModelPaths);
}

TEST_F(PullCacheTest, FilesInSubdirectoriesGetLinksWithMoreParents) {
  HubRepository model = MakeRepository(
      "org/nested", {{"config.json", "{}"}, {"a/b/c.json", "[]"}, {"a/model.safetensors", RandomBytes(1000, 3)}});
  server_.AddRepository(model);
  const ProgramResult result = Pull({"org/nested", "--include", "a/*"});
  EXPECT_EQ(result.status, 0) << result.err;
  ExpectCached(model, {"a/b/c.json", "a/model.safetensors"});
}

TEST_F(PullCacheTest, TwoFilesWithTheSameContentShareABlob) {
  std::map<std::string, std::string> files = ModelFiles(1000);
  files["special_tokens_map.json"] = files["generation_config.json"];
  HubRepository model = MakeRepository("org/shared", files);
  server_.AddRepository(model);
  EXPECT_EQ(Pull({"org/shared"}).status, 0);
  std::set<std::string> paths = kModelPaths;
  paths.insert("special_tokens_map.json");
  ExpectCached(model, paths);
  EXPECT_EQ(Downloads(server_).size(), 5u);
}

TEST_F(PullCacheTest, EmptyFilesAreStored) {
  std::map<std::string, std::string> files = ModelFiles(1000);
  files["merges.txt"] = "";
  HubRepository model = MakeRepository("org/empty", files);
  server_.AddRepository(model);
  const ProgramResult result = Pull({"org/empty"});
  EXPECT_EQ(result.status, 0) << result.err;
  std::set<std::string> paths = kModelPaths;
  paths.insert("merges.txt");
  ExpectCached(model, paths);
}

TEST_F(PullCacheTest, ARepositoryWithoutOwnerIsStoredUnderItsName) {
  HubRepository model = MakeRepository("gpt2", ModelFiles(1000));
  server_.AddRepository(model);
  EXPECT_EQ(Pull({"gpt2"}).status, 0);
  ExpectCached(model, kModelPaths);
}

TEST_F(PullCacheTest, ARenamedRepositoryIsFollowed) {
  server_.Rename("old/name", "org/model");
  const ProgramResult result = Pull({"old/name"});
  EXPECT_EQ(result.status, 0) << result.err;
  HubRepository old = model_;
  old.id = "old/name";
  ExpectCached(old, kModelPaths);
}

TEST_F(PullCacheTest, WithoutSymlinksTheSnapshotHasTheFiles) {
  environment()["HF_HUB_DISABLE_SYMLINKS"] = "1";
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const std::string& path : kModelPaths) {
    EXPECT_FALSE(fs::is_symlink(Snapshot(model_) / path)) << path;
    EXPECT_TRUE(ReadFile(Snapshot(model_) / path) == *model_.File(path).bytes) << path;
  }
  server_.ForgetRequests();
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  EXPECT_EQ(Downloads(server_), std::vector<std::string>());
}

TEST_F(PullCacheTest, TheCacheIsWhereTheEnvironmentSays) {
  environment()["HF_HUB_CACHE"] = Path("elsewhere");
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  EXPECT_TRUE(fs::exists(Path("elsewhere/models--org--model/refs/main")));
  environment().erase("HF_HUB_CACHE");
  environment().erase("HF_HOME");
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  EXPECT_TRUE(fs::exists(Path("user/.cache/huggingface/hub/models--org--model/refs/main")));
}

TEST_F(PullCacheTest, OfflineTheCacheIsUsedWithoutARequest) {
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  server_.ForgetRequests();
  environment()["HF_HUB_OFFLINE"] = "1";
  const ProgramResult complete = Pull({"org/model"});
  EXPECT_EQ(complete.status, 0) << complete.err;
  EXPECT_EQ(complete.out, Snapshot(model_).string() + "\n");
  const ProgramResult missing = Pull({"org/other"});
  EXPECT_EQ(missing.status, 3);
  EXPECT_NE(missing.err.find("HF_HUB_OFFLINE"), std::string::npos) << missing.err;
  EXPECT_EQ(server_.Requests(), std::vector<std::string>());
}

// Pages of two entries.
class PullPagesTest : public PullTest {
 protected:
  static HubServerOptions Options() {
    HubServerOptions options;
    options.tree_page_size = 2;
    return options;
  }
  PullPagesTest() : PullTest(Options()) {}
};

TEST_F(PullPagesTest, AllPagesOfATreeAreRead) {
  const HubRepository model = MakeRepository("org/model", ModelFiles(1000));
  server_.AddRepository(model);
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  ExpectCached(model, kModelPaths);
  const std::vector<std::string> requests = server_.Requests();
  EXPECT_EQ(std::count_if(requests.begin(), requests.end(),
                          [](const std::string& request) { return request.find("/tree/") != std::string::npos; }),
            3);
}

}  // namespace
}  // namespace vllm::app
