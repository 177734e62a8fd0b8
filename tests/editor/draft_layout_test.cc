#include "app/editor/draft_layout.h"

#include <gtest/gtest.h>

#include <random>

#include "app/terminal/text_width.h"

namespace vllm::app {
namespace {

using Lines = std::vector<std::string>;

Lines Texts(const DraftLayout& layout) {
  Lines rows;
  for (const DraftRow& row : layout.rows) rows.emplace_back(row.text.view());
  return rows;
}

Draft DraftOf(std::string_view text, size_t cursor) { return {text, cursor, ">>> ", "... "}; }

DraftLayout LayOut(std::string_view text, size_t cursor, int num_columns, int max_rows = 100, size_t first_row = 0) {
  return LayOutDraft(DraftOf(text, cursor), num_columns, max_rows, first_row);
}

TEST(DraftLayoutTest, EmptyDraftIsThePrompt) {
  const DraftLayout layout = LayOut("", 0, 80);
  EXPECT_EQ(Texts(layout), (Lines{">>> "}));
  EXPECT_EQ(layout.cursor_row, 0);
  EXPECT_EQ(layout.cursor_column, 4);
  EXPECT_EQ(layout.before_cursor.view(), ">>> ");
}

TEST(DraftLayoutTest, EachLineBeginsWithThePromptOrTheContinuationPrompt) {
  const DraftLayout layout = LayOut("one\ntwo\n", 5, 80);
  EXPECT_EQ(Texts(layout), (Lines{">>> one", "... two", "... "}));
  EXPECT_EQ(layout.cursor_row, 1);
  EXPECT_EQ(layout.cursor_column, 5);
}

TEST(DraftLayoutTest, LongLineWrapsBeforeTheLastColumn) {
  const DraftLayout layout = LayOut("abcdefghij", 10, 10);
  EXPECT_EQ(Texts(layout), (Lines{">>> abcde", "fghij"}));
  EXPECT_EQ(layout.cursor_row, 1);
  EXPECT_EQ(layout.cursor_column, 5);
}

TEST(DraftLayoutTest, CursorAfterAFullRowIsInTheFreeColumn) {
  const DraftLayout layout = LayOut("abcde", 5, 10);
  EXPECT_EQ(Texts(layout), (Lines{">>> abcde"}));
  EXPECT_EQ(layout.cursor_column, 9);
}

TEST(DraftLayoutTest, CursorBetweenTwoRowsIsAtTheBeginningOfTheSecond) {
  const DraftLayout layout = LayOut("abcdefgh", 5, 10);
  EXPECT_EQ(layout.cursor_row, 1);
  EXPECT_EQ(layout.cursor_column, 0);
}

TEST(DraftLayoutTest, WideCharacterIsNotCut) {
  EXPECT_EQ(Texts(LayOut("abcd\xE4\xBD\xA0", 0, 10)), (Lines{">>> abcd", "\xE4\xBD\xA0"}));
}

TEST(DraftLayoutTest, TabsExtendToMultiplesOfEightColumns) {
  const DraftLayout layout = LayOut("a\tb", 2, 80);
  EXPECT_EQ(Texts(layout), (Lines{">>> a   b"}));
  EXPECT_EQ(layout.cursor_column, 8);
  EXPECT_EQ(Texts(LayOut("\t\t|", 0, 12)), (Lines{">>>        ", "|"})) << "the second tab ends at the edge";
}

TEST(DraftLayoutTest, ControlCharactersAreShownInHex) {
  EXPECT_EQ(Texts(LayOut("a\x1b[31m\rb\xC2\x9B", 0, 80)), (Lines{">>> a<1b>[31m<0d>b<9b>"}));
  EXPECT_EQ(Texts(LayOut("\xE2\x80\xAE\xFF", 0, 80)), (Lines{">>> <202e>\xEF\xBF\xBD"}));
}

TEST(DraftLayoutTest, CombiningMarkBelongsToItsBase) {
  const DraftLayout layout = LayOut("e\xCC\x81x", 3, 80);
  EXPECT_EQ(Texts(layout), (Lines{">>> e\xCC\x81x"}));
  EXPECT_EQ(layout.cursor_column, 5);
  EXPECT_EQ(LayOut("e\xCC\x81x", 1, 80).cursor_column, 4) << "a cursor inside a cluster is at its beginning";
}

TEST(DraftLayoutTest, EmojiSequenceWrapsAsIfItWereShownAsItsParts) {
  // A family of four: two columns in some terminals, eight in others.
  const std::string family =
      "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7\xE2\x80\x8D\xF0\x9F\x91\xA6";
  const DraftLayout layout = LayOut(family + family, family.size(), 20);
  EXPECT_EQ(Texts(layout), (Lines{">>> " + family, family}));
  EXPECT_EQ(layout.cursor_row, 1);
}

TEST(DraftLayoutTest, TallDraftShowsTheRowsAroundTheCursor) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i) + "\n";
  const DraftLayout end = LayOut(text, text.size(), 80, 5);
  EXPECT_EQ(end.num_rows, 301u);
  EXPECT_EQ(end.first_row, 296u);
  EXPECT_EQ(Texts(end), (Lines{"... 296", "... 297", "... 298", "... 299", "... "}));
  EXPECT_EQ(end.cursor_row, 4);
  const DraftLayout same = LayOut(text, text.find("298"), 80, 5, end.first_row);
  EXPECT_EQ(same.first_row, 296u) << "the rows do not scroll while the cursor stays among them";
  EXPECT_EQ(same.cursor_row, 2);
  const DraftLayout above = LayOut(text, text.find("295"), 80, 5, end.first_row);
  EXPECT_EQ(above.first_row, 295u);
  EXPECT_EQ(above.cursor_row, 0);
  EXPECT_EQ(LayOut(text, 0, 80, 5, 296).first_row, 0u);
}

TEST(DraftLayoutTest, TinyTerminalShowsSomething) {
  for (int columns = 1; columns < 6; ++columns) {
    for (int rows = 1; rows < 4; ++rows) {
      const std::string text = "a\xE4\xBD\xA0\tb\n\x1b";
      for (size_t cursor = 0; cursor <= text.size(); ++cursor) {
        const DraftLayout layout = LayOut(text, cursor, columns, rows);
        ASSERT_LE(layout.rows.size(), static_cast<size_t>(rows));
        ASSERT_GE(layout.cursor_row, 0);
        ASSERT_LT(layout.cursor_row, static_cast<int>(layout.rows.size()));
      }
    }
  }
}

TEST(DraftLayoutTest, LongPromptIsCutAtItsBeginning) {
  const Draft draft = {"found", 0, "(reverse-i-search)`x': ", "... "};
  EXPECT_EQ(Texts(LayOutDraft(draft, 21, 10)), (Lines{"arch)`x': found"}));
}

TEST(DraftLayoutTest, MoveByRowKeepsTheColumn) {
  const std::string text = "abcdef\ngh\nijklmn";
  const auto move = [&](size_t cursor, int direction, int goal) {
    return MoveByRow(DraftOf(text, cursor), 80, direction, goal);
  };
  EXPECT_EQ(move(5, 1, 9), 9u);   // the end of "gh"
  EXPECT_EQ(move(9, 1, 9), 15u);  // column 9 of "ijklmn"
  EXPECT_EQ(move(15, -1, 9), 9u);
  EXPECT_EQ(move(9, -1, 9), 5u);
  EXPECT_EQ(move(3, -1, 7), std::nullopt);
  EXPECT_EQ(move(12, 1, 6), std::nullopt);
}

TEST(DraftLayoutTest, MoveByRowStaysInTheRowThatIsWrapped) {
  // Rows: ">>> abcde", "fghijklmn", "opq". The end of the first row is the beginning of the second.
  const std::string text = "abcdefghijklmnopq";
  EXPECT_EQ(MoveByRow(DraftOf(text, 14), 10, -1, 9), 13u);
  EXPECT_EQ(MoveByRow(DraftOf(text, 13), 10, -1, 8), 4u);
  EXPECT_EQ(MoveByRow(DraftOf(text, 5), 10, 1, 0), 14u);
}

// A slow layout of text without wide or joined characters: every code point has one column.
Lines SimpleRows(const std::u32string& text, int num_columns) {
  Lines rows = {">>> "};
  int column = 4;
  for (const char32_t c : text) {
    if (c == '\n') {
      rows.push_back("... ");
      column = 4;
      continue;
    }
    if (column + 1 > num_columns - 1) {
      rows.push_back("");
      column = 0;
    }
    rows.back() += static_cast<char>(c);
    ++column;
  }
  return rows;
}

TEST(DraftLayoutTest, RandomTextsEqualASlowLayout) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::u32string text;
    std::string bytes;
    const int length = static_cast<int>(random() % 200);
    for (int i = 0; i < length; ++i) {
      const char c = random() % 12 == 0 ? '\n' : static_cast<char>('!' + random() % 90);
      text.push_back(static_cast<char32_t>(c));
      bytes.push_back(c);
    }
    const int columns = 12 + static_cast<int>(random() % 60);
    ASSERT_EQ(Texts(LayOut(bytes, random() % (bytes.size() + 1), columns, 1000)), SimpleRows(text, columns));
  }
}

TEST(DraftLayoutTest, NoRowOfRandomTextIsWiderThanTheTerminal) {
  const Lines pieces = {"a",
                        "\t",
                        "\xE4\xBD\xA0",
                        "e\xCC\x81",
                        "\xD7\xA9",
                        "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA",
                        "\x1b",
                        "\xFF",
                        "\n",
                        "\xF0\x9F\x91\xA9\xF0\x9F\x8F\xBD",
                        "\xE2\x9D\xA4\xEF\xB8\x8F",
                        "\xE0\xB8\x81\xE0\xB8\xB3"};
  std::mt19937 random(8);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 100; ++i) text += pieces[random() % pieces.size()];
    const int columns = 10 + static_cast<int>(random() % 40);
    for (const std::string& row : Texts(LayOut(text, 0, columns, 1000))) ASSERT_LT(TextColumns(row), columns) << row;
  }
}

}  // namespace
}  // namespace vllm::app
