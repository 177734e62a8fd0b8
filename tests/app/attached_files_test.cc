#include "app/attachments/attached_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "app/editor/command_completer.h"
#include "app/editor/path_completion.h"
#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Lines = std::vector<std::string>;

// Changes to a new directory, so that paths are relative.
class AttachedFilesTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::current_path(directory_.path()); }
  void TearDown() override { std::filesystem::current_path(before_); }

  std::string Expanded(const std::string& message) { return ExpandFileReferences(message, {}).text; }
  std::string Error(const std::string& name) {
    return MessageOf<ConfigError>([&] { ReadAttachedFile(name, {}); });
  }

  std::filesystem::path before_ = std::filesystem::current_path();
  TempDirectory directory_;
};

TEST_F(AttachedFilesTest, FilesFollowTheMessageInFencedBlocks) {
  directory_.Write("notes.txt", "one\ntwo\n");
  directory_.Write("my file", "x");
  EXPECT_EQ(Expanded("Compare @notes.txt, and @my\\ file!"),
            "Compare notes.txt, and my file!\n\nnotes.txt:\n```\none\ntwo\n```\n\nmy file:\n```\nx\n```");
  EXPECT_EQ(Expanded("@notes.txt @notes.txt"), "notes.txt notes.txt\n\nnotes.txt:\n```\none\ntwo\n```");
}

TEST_F(AttachedFilesTest, OnlyAnExistingFileAfterABlankIsAReference) {
  directory_.Write("notes.txt", "one");
  directory_.Write("example.com", "two");
  std::filesystem::create_directory("media");
  for (const char* text :
       {"me@example.com", "@media screen", "@nobody", "(@notes.txt)", "a@notes.txt", "@", "@ notes.txt"}) {
    EXPECT_EQ(Expanded(text), text);
  }
  EXPECT_EQ(Expanded("\\@notes.txt a\\@b"), "@notes.txt a\\@b");
  EXPECT_EQ(ExpandFileReferences("@a/b and @c", {}).missing, (Lines{"a/b"}));
}

TEST_F(AttachedFilesTest, PunctuationAfterAFileIsNotPartOfItsName) {
  directory_.Write("notes.txt", "one");
  directory_.Write("odd.!", "two");
  EXPECT_EQ(Expanded("(see @notes.txt!).").substr(0, 17), "(see notes.txt!).");
  EXPECT_EQ(ExpandFileReferences("@odd.!", {}).files.at(0).name, "odd.!");
}

TEST_F(AttachedFilesTest, LongWordsAreText) {
  // Without limits, the time would grow with the square of the number of dots, and of the number of escaped blanks.
  const std::string dots = "@" + std::string(1 << 20, '.');
  EXPECT_TRUE(Expanded(dots) == dots);
  std::string escaped;
  for (int i = 0; i < 20'000; ++i) escaped += "@\\ ";
  EXPECT_TRUE(Expanded(escaped) == escaped);
}

TEST_F(AttachedFilesTest, FenceIsLongerThanTheBackticksInTheFile) {
  directory_.Write("a.md", "````\nx\n````");
  EXPECT_EQ(Expanded("@a.md"), "a.md\n\na.md:\n`````\n````\nx\n````\n`````");
}

TEST_F(AttachedFilesTest, UnusableFilesAreRejected) {
  directory_.Write("binary", std::string("ab\0c", 4));
  directory_.Write("latin1", "caf\xE9");
  ASSERT_EQ(mkfifo("fifo", 0600), 0);
  EXPECT_EQ(Error("binary"), "file binary: is binary (4 B, NUL at byte 2); only text can be sent");
  EXPECT_EQ(Error("latin1"),
            "file latin1: is not UTF-8 text (4 B, invalid at byte 3); convert it, for example with iconv -t UTF-8");
  EXPECT_EQ(Error("fifo"), "file fifo: not a regular file (a FIFO)");
  EXPECT_NE(Error("/dev/zero").find("not a regular file"), std::string::npos);
  EXPECT_NE(Error("missing").find("file missing: "), std::string::npos);
  EXPECT_THROW(Expanded("read @fifo"), ConfigError);
}

TEST_F(AttachedFilesTest, FileOverTheLimitIsRejected) {
  directory_.Write("huge", "");
  ASSERT_EQ(truncate("huge", (16 << 20) + 1), 0);
  EXPECT_NE(Error("huge").find("(limit 16 MiB)"), std::string::npos) << Error("huge");
}

TEST_F(AttachedFilesTest, PathsComplete) {
  directory_.Write("notes one.txt", "");
  directory_.Write("notes.md", "");
  directory_.Write(".hidden", "");
  std::filesystem::create_directory("nested");
  ASSERT_EQ(mkfifo("nfifo", 0600), 0);
  const auto texts = [](std::string_view word) {
    Lines result;
    for (const CompletionChoice& choice : PathChoices(word)) result.push_back(choice.text);
    return result;
  };
  EXPECT_EQ(texts("n"), (Lines{"nested/", "notes\\ one.txt", "notes.md"}));
  EXPECT_EQ(texts("notes\\ "), (Lines{"notes\\ one.txt"}));
  EXPECT_EQ(texts("."), (Lines{".hidden"}));
  EXPECT_EQ(texts("./notes.m"), (Lines{"./notes.md"}));
  EXPECT_EQ(texts("missing/"), Lines());
}

TEST_F(AttachedFilesTest, CommandsArgumentsAndFilesComplete) {
  directory_.Write("a b.txt", "");
  CommandCompleter completer({{"/help", "list"}, {"/set", "change"}, {"/show", "", true}});
  completer.Provide("/set", [](const std::string&) {
    return std::vector<CompletionChoice>{{"seed", "number"}, {"top-p", "share"}};
  });
  const auto complete = [&](std::string_view text) {
    const Completions completions = completer(text);
    Lines result;
    for (const CompletionChoice& choice : completions.choices) {
      result.push_back(std::string(text.substr(0, completions.begin)) + choice.text);
    }
    return result;
  };
  EXPECT_EQ(complete("/"), (Lines{"/help", "/set"}));
  EXPECT_EQ(complete("/s"), (Lines{"/set", "/show"}));
  EXPECT_EQ(complete("/set  t"), (Lines{"/set  top-p"}));
  EXPECT_EQ(complete("/set "), (Lines{"/set seed", "/set top-p"}));
  EXPECT_EQ(complete("/help x"), Lines());
  EXPECT_EQ(complete("//s"), Lines());
  EXPECT_EQ(complete("see @a\\ "), (Lines{"see @a\\ b.txt"}));
  EXPECT_EQ(complete("x@a"), Lines());
  EXPECT_EQ(complete("plain"), Lines());
}

}  // namespace
}  // namespace vllm::app
