#include "app/chats/code_blocks.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

TEST(CodeBlocksTest, FencedBlocksAreFoundWithTheirLanguage) {
  const auto blocks = FindCodeBlocks("a\n```c++ x=1\nint a;\n\n  b;\n```\n\n~~~\n```\n~~~\n");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].language, "c++");
  EXPECT_EQ(blocks[0].text, "int a;\n\n  b;\n");
  EXPECT_EQ(blocks[1].language, "");
  EXPECT_EQ(blocks[1].text, "```\n");
}

TEST(CodeBlocksTest, IndentationOfAListAndMarksOfAQuoteAreRemoved) {
  const auto blocks = FindCodeBlocks("1. x\n\n   ```\n   a\n     b\n   ```\n\n> ```\n> c\n> ```\n");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].text, "a\n  b\n");
  EXPECT_EQ(blocks[1].text, "c\n");
}

TEST(CodeBlocksTest, UnclosedFenceEndsWithTheText) {
  const auto blocks = FindCodeBlocks("```\na\nb");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].text, "a\nb\n");
}

TEST(CodeBlocksTest, ControlCharactersAndHtmlAreKept) {
  const auto blocks = FindCodeBlocks(std::string_view("```\n\x1b[0m<b>&amp;\0\t\n```\n", 23));
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].text, "\x1b[0m<b>&amp;\uFFFD\t\n");
}

TEST(CodeBlocksTest, OtherTextHasNoBlocks) {
  EXPECT_TRUE(FindCodeBlocks("").empty());
  EXPECT_TRUE(FindCodeBlocks("text `code`\n\n    indented\n").empty());
}

}  // namespace
}  // namespace vllm::app
