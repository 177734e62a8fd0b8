#include "app/installed/model_aliases.h"

#include "engine/config/errors.h"
#include "tests/installed/installed_test.h"

namespace vllm::app {
namespace {

using ModelAliasesTest = InstalledTest;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_F(ModelAliasesTest, AliasesAreAddedChangedAndRemoved) {
  EXPECT_TRUE(ReadModelAliases().empty());
  SetModelAlias("small", "me/a:Q4_0");
  SetModelAlias("big.v2", "me/b");
  SetModelAlias("small", "me/c");
  EXPECT_EQ(FindModelAlias("small"), "me/c");
  EXPECT_EQ(ReadModelAliases().size(), 2u);
  EXPECT_EQ(Contents(ModelAliasesPath()), "small = \"me/c\"\n\"big.v2\" = \"me/b\"\n");
  EXPECT_TRUE(RemoveModelAlias("small"));
  EXPECT_FALSE(RemoveModelAlias("small"));
  EXPECT_EQ(FindModelAlias("small"), std::nullopt);
  EXPECT_EQ(FindModelAlias("big.v2"), "me/b");
}

TEST_F(ModelAliasesTest, CommentsOfTheUserStay) {
  WriteFile(ModelAliasesPath(), "# for work\nwork = '/srv/llama'  # ours\n");
  SetModelAlias("work", "/srv/new");
  EXPECT_EQ(Contents(ModelAliasesPath()), "# for work\nwork = \"/srv/new\"  # ours\n");
}

TEST_F(ModelAliasesTest, OnlyPlainWordsAreNames) {
  for (const char* name : {"small", "a", "GPT-4.x_1", "0"}) EXPECT_TRUE(IsModelAliasName(name)) << name;
  for (const char* name : {"", "a/b", "a:b", "guide", "x.gguf", "-a", ".a", "a b", "a=b", "\xC3\xA4"}) {
    EXPECT_FALSE(IsModelAliasName(name)) << name;
  }
  EXPECT_FALSE(IsModelAliasName(std::string(65, 'a')));
}

TEST_F(ModelAliasesTest, AnInvalidFileIsAnErrorThatNamesThePlace) {
  const std::string path = ModelAliasesPath();
  const auto error_of = [&](const std::string& text) {
    WriteFile(path, text);
    return MessageOf<ConfigError>([] { ReadModelAliases(); }).substr(path.size());
  };
  EXPECT_EQ(error_of("a = \"x\"\n[t]\nb = \"y\"\n"), ":3:1: b: an alias cannot be in a table");
  EXPECT_EQ(error_of("\"a b\" = \"x\"\n"), ":1:1: a b: cannot be the name of an alias");
  EXPECT_EQ(error_of("a = [\"x\"]\n"), ":1:1: a: must be the name of a model");
  EXPECT_EQ(error_of("a = \"\"\n"), ":1:1: a: must be the name of a model");
  EXPECT_EQ(error_of("a = \n"), ":1:5: missing value");
  EXPECT_THROW(SetModelAlias("b", "x/y"), ConfigError);
  EXPECT_EQ(Contents(path), "a = \n");
  // A name that cannot be an alias does not need the file.
  EXPECT_EQ(FindModelAlias("me/b"), std::nullopt);
}

}  // namespace
}  // namespace vllm::app
