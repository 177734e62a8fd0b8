#include "app/installed/remove_model.h"

#include <fcntl.h>
#include <sys/file.h>

#include <set>

#include "app/installed/model_aliases.h"
#include "engine/config/errors.h"
#include "tests/installed/installed_test.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

class RemoveModelTest : public InstalledTest {
 protected:
  static constexpr char kOther[] = "fedcba9876543210fedcba9876543210fedcba98";

  int64_t RemoveNamed(const std::string& name, const std::string& revision = "") {
    const RemovalPlan plan = PlanRemoval(name, revision);
    const int64_t bytes = Remove(plan);
    EXPECT_EQ(bytes, plan.bytes);
    return bytes;
  }
  // Returns all files and links below a directory, relative to it.
  static std::set<std::string> FilesIn(const std::string& directory) {
    std::set<std::string> files;
    if (!fs::exists(directory)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (!entry.is_directory() || entry.is_symlink()) {
        files.insert(entry.path().lexically_relative(directory).string());
      }
    }
    return files;
  }
  using Files = std::set<std::string>;
};

TEST_F(RemoveModelTest, ARepositoryIsRemovedCompletely) {
  AddRef("me--a");
  AddFile("me--a", "config.json", "c", "12");
  AddFile("me--a", "sub/model.safetensors", "m", "345");
  WriteFile(Repository("me--a") + "/blobs/x.incomplete", "6789");
  AddFile("me--ab", "config.json", "c", "12");
  EXPECT_EQ(RemoveNamed("me/a"), 9);
  EXPECT_FALSE(fs::exists(Repository("me--a")));
  EXPECT_TRUE(fs::exists(Snapshot("me--ab") + "/config.json"));
}

TEST_F(RemoveModelTest, ATagRemovesOnlyItsFile) {
  AddRef("me--a");
  AddFile("me--a", "a-Q4_0.gguf", "4", "4444");
  AddFile("me--a", "a-Q8_0-00001-of-00002.gguf", "81", "8");
  AddFile("me--a", "a-Q8_0-00002-of-00002.gguf", "82", "88");
  EXPECT_EQ(RemoveNamed("me/a:Q8_0"), 3);
  const std::string commit = kCommit;
  EXPECT_EQ(FilesIn(Repository("me--a")), (Files{"blobs/4", "refs/main", "snapshots/" + commit + "/a-Q4_0.gguf"}));
  EXPECT_EQ(RemoveNamed("me/a:Q4_0"), 4);
  EXPECT_FALSE(fs::exists(Repository("me--a")));
}

TEST_F(RemoveModelTest, BlobsThatAnotherSnapshotUsesStay) {
  AddRef("me--a");
  AddRef("me--a", "refs/pr/1", kOther);
  AddFile("me--a", "config.json", "shared", "12");
  AddFile("me--a", "model.safetensors", "m1", "345");
  AddLink("me--a", "config.json", "shared", kOther);
  AddFile("me--a", "dir/model.safetensors", "m2", "6789", kOther);
  EXPECT_EQ(RemoveNamed("me/a", "refs/pr/1"), 4);
  const std::string commit = kCommit;
  EXPECT_EQ(FilesIn(Repository("me--a")),
            (Files{"blobs/m1", "blobs/shared", "refs/main", "snapshots/" + commit + "/config.json",
                   "snapshots/" + commit + "/model.safetensors"}));
  EXPECT_FALSE(fs::exists(Snapshot("me--a", kOther)));
}

TEST_F(RemoveModelTest, ATagRemovesTheFileFromEverySnapshot) {
  AddRef("me--a");
  AddFile("me--a", "a-Q4_0.gguf", "old", "1");
  AddFile("me--a", "a-Q8_0.gguf", "keep", "2");
  AddFile("me--a", "a-Q4_0.gguf", "new", "33", kOther);
  EXPECT_EQ(RemoveNamed("me/a:Q4_0"), 3);
  EXPECT_EQ(FilesIn(Repository("me--a") + "/blobs"), Files{"keep"});
  EXPECT_FALSE(fs::exists(Snapshot("me--a", kOther)));
}

TEST_F(RemoveModelTest, FilesInSnapshotsWithoutLinksAreRemoved) {
  AddRef("me--a");
  WriteFile(Snapshot("me--a") + "/a-Q4_0.gguf", "1234");
  WriteFile(Snapshot("me--a") + "/a-Q8_0.gguf", "5");
  EXPECT_EQ(RemoveNamed("me/a:Q4_0"), 4);
  EXPECT_TRUE(fs::exists(Snapshot("me--a") + "/a-Q8_0.gguf"));
}

TEST_F(RemoveModelTest, LinksThatLeadOutAreRemovedButNotTheirTargets) {
  WriteFile(root() + "/outside/blobs/x", "precious");
  AddRef("me--a");
  AddFile("me--a", "a-Q8_0.gguf", "8", "8");
  fs::create_symlink(root() + "/outside/blobs/x", Snapshot("me--a") + "/a-Q4_0.gguf");
  fs::create_symlink("../../../../outside/blobs/x", Snapshot("me--a") + "/a-Q5_0.gguf");
  fs::create_directory_symlink(root() + "/outside", Snapshot("me--a") + "/directory");
  EXPECT_EQ(RemoveNamed("me/a:Q4_0"), 0);
  EXPECT_EQ(RemoveNamed("me/a:Q5_0"), 0);
  EXPECT_EQ(RemoveNamed("me/a"), 1);
  EXPECT_FALSE(fs::exists(Repository("me--a")));
  EXPECT_EQ(FilesIn(root() + "/outside"), Files{"blobs/x"});
}

TEST_F(RemoveModelTest, ARepositoryThatIsALinkIsRejected) {
  WriteFile(root() + "/outside/snapshots/x/config.json", "{}");
  fs::create_directory_symlink(root() + "/outside", Repository("me--a"));
  EXPECT_EQ(
      MessageOf<ConfigError>([] { PlanRemoval("me/a", ""); }),
      "models rm me/a: " + Repository("me--a") + " is a symbolic link, so its contents may belong to something else");
  AddFile("me--b", "b-Q4_0.gguf", "4", "4");
  fs::rename(Repository("me--b") + "/blobs", root() + "/moved");
  fs::create_directory_symlink(root() + "/moved", Repository("me--b") + "/blobs");
  EXPECT_THROW(PlanRemoval("me/b:Q4_0", ""), ConfigError);
  EXPECT_TRUE(fs::exists(root() + "/moved/4"));
}

TEST_F(RemoveModelTest, PathsAndTheBundledModelAreRejected) {
  WriteFile(root() + "/model/config.json", "{}");
  EXPECT_EQ(MessageOf<ConfigError>([&] { PlanRemoval(root() + "/model", ""); }),
            "models rm " + root() + "/model: " + root() +
                "/model is in neither the Hugging Face cache nor vllmcli's models directory");
  EXPECT_EQ(MessageOf<ConfigError>([] { PlanRemoval("guide", ""); }),
            "models rm guide: is the bundled model, which is a part of vllmcli");
  SetModelAlias("work", root() + "/model");
  EXPECT_THROW(PlanRemoval("work", ""), ConfigError);
}

TEST_F(RemoveModelTest, AModelThatIsNotInstalledIsAnError) {
  AddRef("me--a");
  AddFile("me--a", "a-Q8_0.gguf", "8", "8");
  for (const std::string name : {"me/b", "me/a:Q4_0", "..", "me/..", "../hub", "x.gguf"}) {
    EXPECT_EQ(MessageOf<ModelError>([&] { PlanRemoval(name, ""); }).substr(0, 9), "models rm") << name;
  }
  EXPECT_THROW(PlanRemoval("me/a", "v2"), ModelError);
}

TEST_F(RemoveModelTest, AnAliasRemovesItsModelAndStays) {
  AddFile("me--a", "a-Q8_0.gguf", "8", "8");
  SetModelAlias("small", "me/a:Q8_0");
  EXPECT_EQ(RemoveNamed("small"), 1);
  EXPECT_FALSE(fs::exists(Repository("me--a")));
  EXPECT_EQ(FindModelAlias("small"), "me/a:Q8_0");
}

TEST_F(RemoveModelTest, ModelsOfTheOwnDirectoryAreRemoved) {
  WriteFile(Own() + "/me/mine/mine-Q4_0.gguf", "4444");
  WriteFile(Own() + "/me/mine/mine-Q8_0.gguf", "8");
  WriteFile(Own() + "/me/other/config.json", "{}");
  WriteFile(Own() + "/alone.gguf", "aa");
  EXPECT_EQ(RemoveNamed("me/mine:Q4_0"), 4);
  EXPECT_EQ(RemoveNamed("me/mine"), 1);
  EXPECT_EQ(FilesIn(Own()), (Files{"alone.gguf", "me/other/config.json"}));
  EXPECT_EQ(RemoveNamed("me/other"), 2);
  EXPECT_EQ(RemoveNamed("alone.gguf"), 2);
  EXPECT_TRUE(fs::is_empty(Own()));
}

TEST_F(RemoveModelTest, ALinkInTheOwnDirectoryIsRejectedOrRemovedAlone) {
  WriteFile(root() + "/outside/config.json", "{}");
  WriteFile(root() + "/outside/m.gguf", "12");
  fs::create_directories(Own());
  fs::create_directory_symlink(root() + "/outside", Own() + "/linked");
  fs::create_symlink(root() + "/outside/m.gguf", Own() + "/m.gguf");
  EXPECT_THROW(PlanRemoval("linked", ""), ConfigError);
  EXPECT_EQ(RemoveNamed("m.gguf"), 0);
  EXPECT_FALSE(fs::is_symlink(Own() + "/m.gguf"));
  EXPECT_EQ(FilesIn(root() + "/outside"), (Files{"config.json", "m.gguf"}));
}

TEST_F(RemoveModelTest, ADownloadInProgressIsNotDisturbed) {
  AddRef("me--a");
  AddFile("me--a", "a-Q4_0.gguf", "4", "4");
  AddFile("me--a", "a-Q8_0.gguf", "8", "8");
  const std::string lock = root() + "/hub/.locks/models--me--a/8.lock";
  WriteFile(lock, "");
  const tokenizer::UniqueFd fd(open(lock.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(fd.get(), LOCK_EX), 0);
  const Files before = FilesIn(root() + "/hub");
  EXPECT_EQ(MessageOf<RequestError>([&] { RemoveNamed("me/a"); }),
            "models rm me/a: another process is downloading it (" + lock + " is locked)");
  EXPECT_THROW(RemoveNamed("me/a:Q8_0"), RequestError);
  EXPECT_EQ(FilesIn(root() + "/hub"), before);
  EXPECT_EQ(RemoveNamed("me/a:Q4_0"), 1);
}

TEST_F(RemoveModelTest, ContentsWithAnotherNameAreNotFreed) {
  AddFile("me--a", "a-Q4_0.gguf", "4", "4444");
  fs::create_hard_link(Repository("me--a") + "/blobs/4", root() + "/kept");
  EXPECT_EQ(RemoveNamed("me/a"), 0);
  EXPECT_TRUE(fs::exists(root() + "/kept"));
}

TEST_F(RemoveModelTest, ThePlanListsTheModelsThatAreGone) {
  AddRef("me--a");
  AddFile("me--a", "a-Q4_0.gguf", "4", "4");
  AddFile("me--a", "a-Q8_0.gguf", "8", "8");
  ASSERT_EQ(PlanRemoval("me/a:Q4_0", "").models.size(), 1u);
  EXPECT_EQ(PlanRemoval("me/a:Q4_0", "").models[0].name, "me/a:Q4_0");
  EXPECT_EQ(PlanRemoval("me/a", "").models.size(), 2u);
}

}  // namespace
}  // namespace vllm::app
