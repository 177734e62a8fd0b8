#include "app/cli/toml/toml_editor.h"

#include <gtest/gtest.h>

#include "app/cli/toml/toml_reader.h"
#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

std::string Set(const std::string& text, const std::string& value = "x") {
  return SetTomlString(text, "model", value, "c.toml");
}
std::string Remove(const std::string& text) { return RemoveTomlKey(text, "model", "c.toml"); }

TEST(TomlEditorTest, OnlyTheValueOfAnExistingKeyChanges) {
  EXPECT_EQ(Set("# mine\n  model   =  'old'  # why\ntop-k = 5\n"), "# mine\n  model   =  \"x\"  # why\ntop-k = 5\n");
  EXPECT_EQ(Set("model = \"a\""), "model = \"x\"");
  EXPECT_EQ(Set("\"model\" = \"\"\"\na\nb\"\"\" # c\nseed = 1\n"), "\"model\" = \"x\" # c\nseed = 1\n");
}

TEST(TomlEditorTest, AnAddedKeyFollowsTheOtherKeysAtTheTop) {
  EXPECT_EQ(Set("seed = 1 # one\n\n[chat]\nmodel = \"y\"\n"),
            "seed = 1 # one\nmodel = \"x\"\n\n[chat]\nmodel = \"y\"\n");
  EXPECT_EQ(Set("stop = [\n  \"a\",\n]\n# end\n"), "stop = [\n  \"a\",\n]\nmodel = \"x\"\n# end\n");
  EXPECT_EQ(Set("chat.seed = 1\n"), "chat.seed = 1\nmodel = \"x\"\n");
}

TEST(TomlEditorTest, AnAddedKeyPrecedesTheFirstTableAndItsComments) {
  EXPECT_EQ(Set("# settings\n\n# for chats\n [chat]\nseed = 1\n"),
            "# settings\n\nmodel = \"x\"\n# for chats\n [chat]\nseed = 1\n");
  EXPECT_EQ(Set("[chat]\n"), "model = \"x\"\n[chat]\n");
}

TEST(TomlEditorTest, AnAddedKeyEndsAFileWithoutKeysAndTables) {
  EXPECT_EQ(Set(""), "model = \"x\"\n");
  EXPECT_EQ(Set("# only a comment"), "# only a comment\nmodel = \"x\"\n");
}

TEST(TomlEditorTest, ALastLineWithoutALineBreakGetsOne) {
  EXPECT_EQ(Set("seed = 1"), "seed = 1\nmodel = \"x\"\n");
  EXPECT_EQ(Set("a = 1\r\nseed = 1"), "a = 1\r\nseed = 1\r\nmodel = \"x\"\r\n");
}

TEST(TomlEditorTest, LineBreaksStayCarriageReturnLineFeed) {
  EXPECT_EQ(Set("seed = 1\r\n[chat]\r\n"), "seed = 1\r\nmodel = \"x\"\r\n[chat]\r\n");
  EXPECT_EQ(Set("model = 'a' # b\r\nseed = 1\r\n"), "model = \"x\" # b\r\nseed = 1\r\n");
  EXPECT_EQ(Remove("model = 'a'\r\nseed = 1\r\n"), "seed = 1\r\n");
}

TEST(TomlEditorTest, AByteOrderMarkStaysFirst) {
  EXPECT_EQ(Set("\xEF\xBB\xBF[chat]\n"), "\xEF\xBB\xBFmodel = \"x\"\n[chat]\n");
  EXPECT_EQ(Set("\xEF\xBB\xBF# for chats\n[chat]\n"), "\xEF\xBB\xBFmodel = \"x\"\n# for chats\n[chat]\n");
  EXPECT_EQ(Set("\xEF\xBB\xBFmodel = 'a'\n"), "\xEF\xBB\xBFmodel = \"x\"\n");
  EXPECT_EQ(Remove("\xEF\xBB\xBFmodel = 'a'\nseed = 1\n"), "\xEF\xBB\xBFseed = 1\n");
}

TEST(TomlEditorTest, ValuesAreQuotedSoThatTheReaderReturnsThem) {
  for (const std::string value : {"a\"b\\c", "tab\there", "new\nline", "caf\xC3\xA9 'x' # y", "\x7F\x01", ""}) {
    const std::string text = Set("seed = 1\n", value);
    const TomlDocument document = ReadToml(text, "c.toml");
    ASSERT_EQ(document.entries.size(), 2u) << text;
    EXPECT_EQ(document.entries[1].values, std::vector<std::string>{value});
  }
  EXPECT_EQ(MessageOf<ConfigError>([] { Set("", "\xFF"); }), "c.toml: model: not valid UTF-8 (\\xff)");
}

TEST(TomlEditorTest, KeysThatAreNotBareAreQuoted) {
  EXPECT_EQ(SetTomlString("", "a.b", "x", "c.toml"), "\"a.b\" = \"x\"\n");
  EXPECT_EQ(SetTomlString("\"a.b\" = 1\n", "a.b", "x", "c.toml"), "\"a.b\" = \"x\"\n");
}

TEST(TomlEditorTest, RemovingAKeyRemovesItsLineButNotItsComment) {
  EXPECT_EQ(Remove("a = 1\nmodel = 'x'\nb = 2\n"), "a = 1\nb = 2\n");
  EXPECT_EQ(Remove("model = 'x' # keep\nb = 2\n"), "# keep\nb = 2\n");
  EXPECT_EQ(Remove("a = 1\nmodel = 'x'"), "a = 1\n");
  EXPECT_EQ(Remove("[chat]\nmodel = 'x'\n"), "[chat]\nmodel = 'x'\n");
}

TEST(TomlEditorTest, AFileThatCannotBeParsedIsRejected) {
  EXPECT_EQ(MessageOf<ConfigError>([] { Set("seed = 1\nmodel = \n"); }), "c.toml:2:9: missing value");
  EXPECT_EQ(MessageOf<ConfigError>([] { Remove("[a\n"); }), "c.toml:1:3: missing ] after the table name");
}

}  // namespace
}  // namespace vllm::app
