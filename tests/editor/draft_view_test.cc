#include "app/editor/draft_view.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/terminal_emulator.h"

namespace vllm::app {
namespace {

using Lines = std::vector<std::string>;

DraftLayout LayOut(const std::string& text, size_t cursor, int num_columns, int max_rows) {
  return LayOutDraft({text, cursor, ">>> ", "... "}, num_columns, max_rows);
}

TEST(DraftViewTest, TypedAsciiIsOnlyAppended) {
  DraftView view;
  EXPECT_EQ(view.Draw(LayOut("", 0, 80, 24)), ">>> ");
  EXPECT_EQ(view.Draw(LayOut("ab", 2, 80, 24)), "ab");
  EXPECT_EQ(view.Draw(LayOut("ab", 2, 80, 24)), "");
}

TEST(DraftViewTest, EraseLeavesWhatIsAbove) {
  TerminalEmulator terminal(6, 20);
  DraftView view;
  terminal.Feed("above\r\n");
  terminal.Feed(view.Draw(LayOut("one\ntwo\nthree", 4, 20, 5)));
  EXPECT_EQ(terminal.Screen(), "above\n>>> one\n... two\n... three\n");
  terminal.Feed(view.Erase());
  EXPECT_EQ(terminal.Screen(), "above\n");
  EXPECT_EQ(terminal.cursor(), (ScreenCursor{1, 0}));
}

TEST(DraftViewTest, RandomFramesShowTheirRowsAndKeepWhatIsAbove) {
  const Lines pieces = {"a", "bc ", "\n", "\t", "\xE4\xBD\xA0", "e\xCC\x81", "\xD7\xA9", "long word and more "};
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const int num_rows = 3 + static_cast<int>(random() % 10);
    const int num_columns = 12 + static_cast<int>(random() % 30);
    TerminalEmulator terminal(num_rows, num_columns);
    DraftView view;
    terminal.Feed("above 1\r\nabove 2\r\n");
    std::string text;
    for (int frame = 0; frame < 40; ++frame) {
      if (random() % 3 == 0) text.erase(random() % (text.size() + 1));
      while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
      while (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
      text += pieces[random() % pieces.size()];
      const size_t cursor = random() % 2 == 0 ? text.size() : 0;
      const DraftLayout layout = LayOut(text, cursor, num_columns, num_rows - 1);
      terminal.Feed(view.Draw(layout));
      const int top = terminal.cursor().row - layout.cursor_row;
      ASSERT_GE(top, 0);
      for (size_t i = 0; i < layout.rows.size(); ++i) {
        std::string row(layout.rows[i].text.view());
        row.erase(row.find_last_not_of(' ') + 1);
        ASSERT_EQ(terminal.Row(top + static_cast<int>(i)), row) << terminal.Screen();
      }
      ASSERT_EQ(terminal.cursor().column, layout.cursor_column);
      for (int row = top + static_cast<int>(layout.rows.size()); row < num_rows; ++row) {
        ASSERT_EQ(terminal.Row(row), "") << terminal.Screen();
      }
      const Lines all = terminal.AllRows();
      ASSERT_EQ(all[0], "above 1");
      ASSERT_EQ(all[1], "above 2");
    }
  }
}

}  // namespace
}  // namespace vllm::app
