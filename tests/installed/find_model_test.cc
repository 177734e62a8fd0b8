#include "app/installed/find_model.h"

#include "app/installed/model_aliases.h"
#include "engine/config/errors.h"
#include "tests/installed/installed_test.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

class FindModelTest : public InstalledTest {
 protected:
  void SetUp() override {
    InstalledTest::SetUp();
    AddRef("me--tiny-GGUF");
    AddFile("me--tiny-GGUF", "tiny-Q8_0.gguf", "q8", "8");
    AddFile("me--tiny-GGUF", "UD/tiny-UD-Q4_K_XL-00001-of-00002.gguf", "x1", "1");
    AddFile("me--tiny-GGUF", "UD/tiny-UD-Q4_K_XL-00002-of-00002.gguf", "x2", "2");
    AddFile("me--tiny-GGUF", "mmproj-tiny-F16.gguf", "mm", "m");
  }

  // Returns the path of the file in the snapshot that the name means.
  std::string FileOf(const std::string& name) const {
    return fs::path(FindModel(name).gguf_file).lexically_relative(Snapshot("me--tiny-GGUF")).string();
  }
  // Returns the hint of the error for a model that is not installed.
  static std::string MissingHint(const std::string& name, const std::string& revision = "") {
    try {
      FindModel(name, "auto", revision);
    } catch (const MissingModelError& error) {
      return error.hint();
    } catch (const ModelError& error) {
      return "other: " + error.hint();
    }
    return "";
  }
};

TEST_F(FindModelTest, ATagChoosesAFile) {
  EXPECT_EQ(FileOf("me/tiny-GGUF:Q8_0"), "tiny-Q8_0.gguf");
  EXPECT_EQ(FileOf("me/tiny-GGUF:q8_0"), "tiny-Q8_0.gguf");
  EXPECT_EQ(FileOf("me/tiny-GGUF:UD-Q4_K_XL"), "UD/tiny-UD-Q4_K_XL-00001-of-00002.gguf");
  EXPECT_EQ(FileOf("me/tiny-GGUF/tiny-Q8_0.gguf"), "tiny-Q8_0.gguf");
}

TEST_F(FindModelTest, WithoutATagTheFileThatPullPrefersIsUsed) {
  EXPECT_EQ(FileOf("me/tiny-GGUF"), "tiny-Q8_0.gguf");
  AddFile("me--tiny-GGUF", "tiny-Q4_K_M.gguf", "q4", "4");
  EXPECT_EQ(FileOf("me/tiny-GGUF"), "tiny-Q4_K_M.gguf");
}

TEST_F(FindModelTest, UrlsOfTheHubAreNames) {
  EXPECT_EQ(FileOf("hf.co/me/tiny-GGUF:Q8_0"), "tiny-Q8_0.gguf");
  EXPECT_EQ(FileOf("https://huggingface.co/me/tiny-GGUF/blob/main/tiny-Q8_0.gguf"), "tiny-Q8_0.gguf");
  EXPECT_EQ(FindModel("https://huggingface.co/me/tiny-GGUF:Q8_0").name, "me/tiny-GGUF:Q8_0");
}

TEST_F(FindModelTest, ARevisionChoosesASnapshot) {
  const std::string other = "fedcba9876543210fedcba9876543210fedcba98";
  AddRef("me--tiny-GGUF", "v2", other);
  AddFile("me--tiny-GGUF", "tiny-Q8_0.gguf", "q8-2", "new", other);
  EXPECT_EQ(FindModel("me/tiny-GGUF:Q8_0", "auto", "v2").directory, Snapshot("me--tiny-GGUF", other));
  EXPECT_EQ(FindModel("me/tiny-GGUF:Q8_0", "auto", other).directory, Snapshot("me--tiny-GGUF", other));
  EXPECT_EQ(FindModel("me/tiny-GGUF:Q8_0").directory, Snapshot("me--tiny-GGUF"));
  EXPECT_EQ(MissingHint("me/tiny-GGUF:Q8_0", "v3"), "vllmcli pull me/tiny-GGUF:Q8_0 --revision v3 downloads it");
}

TEST_F(FindModelTest, ARevisionOfAPathIsAnError) {
  WriteFile(root() + "/config.json", "{}");
  EXPECT_EQ(MessageOf<ConfigError>([&] { FindModel(root(), "auto", "v2"); }),
            "--revision: model " + root() + " is not a repository of the Hugging Face hub");
  EXPECT_THROW(FindModel("", "auto", "v2"), ConfigError);
  EXPECT_EQ(MessageOf<ConfigError>([] { FindModel("hf.co/me/tiny-GGUF/tree/v1", "auto", "v2"); }),
            "--revision: differs from the revision in the URL (v2, v1)");
}

TEST_F(FindModelTest, TheErrorForAMissingRepositoryHasTheCommandThatDownloadsIt) {
  EXPECT_EQ(MissingHint("you/other"), "vllmcli pull you/other downloads it");
  EXPECT_EQ(MissingHint("hf.co/you/other:Q4_K_M"), "vllmcli pull you/other:Q4_K_M downloads it");
  EXPECT_EQ(MissingHint("me/tiny-GGUF:Q5_K_M"), "vllmcli pull me/tiny-GGUF:Q5_K_M downloads it");
  EXPECT_EQ(MissingHint("you/other/a b.gguf"), "vllmcli pull 'you/other:a b.gguf' downloads it");
}

TEST_F(FindModelTest, OtherNamesAreNotTakenForRepositories) {
  for (const std::string name :
       {"gpt2", "./you/other", "/you/other", "you/other/third", "x.gguf", "you/x.gguf", "~/x"}) {
    EXPECT_EQ(MissingHint(name).substr(0, 7), "other: ") << name;
  }
}

TEST_F(FindModelTest, AFileWhoseDownloadWasInterruptedIsMissing) {
  AddLink("me--tiny-GGUF", "tiny-Q6_K.gguf", "not-there");
  EXPECT_EQ(MissingHint("me/tiny-GGUF:Q6_K"), "vllmcli pull me/tiny-GGUF:Q6_K downloads it");
}

TEST_F(FindModelTest, ARepositoryWithConfigJsonIsAHuggingFaceModel) {
  AddFile("me--tiny-GGUF", "config.json", "c", "{}");
  EXPECT_FALSE(FindModel("me/tiny-GGUF").is_gguf());
  EXPECT_TRUE(FindModel("me/tiny-GGUF", "gguf").is_gguf());
  EXPECT_TRUE(FindModel("me/tiny-GGUF:Q8_0").is_gguf());
  EXPECT_THROW(FindModel("me/tiny-GGUF:Q8_0", "safetensors"), ModelError);
}

TEST_F(FindModelTest, AnAliasIsTheModelThatItNames) {
  SetModelAlias("small", "me/tiny-GGUF:Q8_0");
  SetModelAlias("work", root());
  EXPECT_EQ(FileOf("small"), "tiny-Q8_0.gguf");
  EXPECT_EQ(FindModel("small").name, "me/tiny-GGUF:Q8_0");
  EXPECT_EQ(MessageOf<ModelError>([] { FindModel("work"); }), "model " + root() + ": no config.json in this directory");
}

TEST_F(FindModelTest, AliasesOfAliasesDoNotExist) {
  WriteFile(ModelAliasesPath(), "a = \"b\"\nb = \"a\"\n");
  EXPECT_EQ(MessageOf<ModelError>([] { FindModel("a"); }).substr(0, 40), "model b: neither an existing path nor an");
}

TEST_F(FindModelTest, APathHidesAnAliasAndAnAliasHidesARepository) {
  AddRef("gpt2");
  AddFile("gpt2", "config.json", "c", "{}");
  EXPECT_EQ(FindModel("gpt2").directory, Snapshot("gpt2"));
  SetModelAlias("gpt2", "me/tiny-GGUF:Q8_0");
  EXPECT_EQ(FileOf("gpt2"), "tiny-Q8_0.gguf");
  const fs::path before = fs::current_path();
  WriteFile(root() + "/project/gpt2/config.json", "{}");
  fs::current_path(root() + "/project");
  EXPECT_EQ(FindModel("gpt2").origin, "directory");
  fs::current_path(before);
}

TEST_F(FindModelTest, ModelsOfTheOwnDirectoryHaveTags) {
  WriteFile(Own() + "/me/mine/mine-Q4_0.gguf", "4");
  WriteFile(Own() + "/me/mine/mine-Q8_0.gguf", "8");
  WriteFile(Own() + "/alone.gguf", "a");
  EXPECT_EQ(FindModel("me/mine:Q4_0").path(), Own() + "/me/mine/mine-Q4_0.gguf");
  EXPECT_EQ(FindModel("me/mine").path(), Own() + "/me/mine/mine-Q8_0.gguf");
  EXPECT_EQ(FindModel("alone.gguf").path(), Own() + "/alone.gguf");
}

}  // namespace
}  // namespace vllm::app
