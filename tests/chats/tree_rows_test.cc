#include "app/chats/tree_rows.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

int64_t Add(ChatTree& tree, int64_t parent, ChatRole role, std::string text) {
  StoredMessage message;
  message.parent = parent;
  message.role = role;
  message.text = std::move(text);
  return tree.Add(std::move(message));
}

std::string Text(const ChatTree& tree, bool uses_utf8 = true) {
  std::string text;
  for (const TreeRow& row : TreeRows(tree, uses_utf8)) {
    text += (row.is_current ? "* " : row.is_on_path ? "+ " : "  ") + row.branch + row.text + "\n";
  }
  return text;
}

TEST(TreeRowsTest, ConversationWithoutBranchesIsNotIndented) {
  ChatTree tree(nullptr);
  EXPECT_TRUE(TreeRows(tree, true).empty());
  const int64_t system = Add(tree, 0, ChatRole::kSystem, "be\nbrief");
  const int64_t question = Add(tree, system, ChatRole::kUser, "\n  question\nmore");
  Add(tree, question, ChatRole::kAssistant, "");
  EXPECT_EQ(Text(tree), "+ [system] be\n+ >>> question\n* [empty answer]\n");
}

TEST(TreeRowsTest, BranchesAreDrawnBelowTheirParent) {
  ChatTree tree(nullptr);
  const int64_t q1 = Add(tree, 0, ChatRole::kUser, "q1");
  const int64_t a1 = Add(tree, q1, ChatRole::kAssistant, "a1");
  const int64_t q2 = Add(tree, a1, ChatRole::kUser, "q2");
  Add(tree, q2, ChatRole::kAssistant, "a2");
  const int64_t a3 = Add(tree, q2, ChatRole::kAssistant, "a3");
  Add(tree, a3, ChatRole::kUser, "q4");
  const int64_t q3 = Add(tree, a1, ChatRole::kUser, "q3");
  const int64_t other = Add(tree, 0, ChatRole::kUser, "other");
  tree.MoveTo(a3);
  EXPECT_EQ(Text(tree),
            "+ ├─ >>> q1\n"
            "+ │  a1\n"
            "+ │  ├─ >>> q2\n"
            "  │  │  ├─ a2\n"
            "* │  │  └─ a3\n"
            "  │  │     >>> q4\n"
            "  │  └─ >>> q3\n"
            "  └─ >>> other\n");
  EXPECT_EQ(Text(tree, false).substr(0, 25), "+ |- >>> q1\n+ |  a1\n+ |  ");
  const std::vector<TreeRow> rows = TreeRows(tree, true);
  EXPECT_EQ(rows[6].id, q3);
  EXPECT_EQ(rows[7].id, other);
}

// 20,000 levels of branches: an answer and another version of it, which is continued.
TEST(TreeRowsTest, DeepTreesNeedNeitherRecursionNorWideRows) {
  ChatTree tree(nullptr);
  int64_t id = 0;
  for (int i = 0; i < 20'000; ++i) {
    Add(tree, id, ChatRole::kUser, "left");
    id = Add(tree, id, ChatRole::kUser, "x");
  }
  const std::vector<TreeRow> rows = TreeRows(tree, false);
  ASSERT_EQ(rows.size(), 40'000u);
  for (const TreeRow& row : rows) ASSERT_LE(row.branch.size(), 36u);
  EXPECT_TRUE(rows.back().is_current);
}

TEST(TreeRowsTest, LongLinesAreCutBetweenCharacters) {
  ChatTree tree(nullptr);
  std::string text = "a";
  for (int i = 0; i < 1000; ++i) text += "你";
  Add(tree, 0, ChatRole::kAssistant, text);
  const std::string shown = TreeRows(tree, true)[0].text;
  EXPECT_EQ(shown, text.substr(0, shown.size()));
  EXPECT_EQ(shown.size() % 3, 1u);
  EXPECT_GT(shown.size(), 300u);
}

}  // namespace
}  // namespace vllm::app
