// Golden screens of the common constructs of Markdown, and the styles of their text.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/markdown/rendered_screen.h"

namespace vllm::app {
namespace {

std::string Render(std::string_view text, int num_columns = 40, bool has_styles = true, bool has_links = false) {
  const ScreenSize size{24, num_columns};
  return TextOf(RenderWhole(text, size, OptionsFor(size, has_styles, has_links)));
}

std::string RenderBytes(std::string_view text, bool has_styles, bool has_links) {
  const ScreenSize size{24, 80};
  FrameWriter writer(size.num_rows, size.num_columns);
  return std::string(writer.Draw(RenderWhole(text, size, OptionsFor(size, has_styles, has_links)), {}).view());
}

TEST(MarkdownScreenTest, ParagraphsWrapAtSpacesAndKeepTheirLineBreaks) {
  EXPECT_EQ(Render("The quick brown fox jumps over the lazy dog.\nNext line.\n\n\nNext paragraph.", 20),
            "The quick brown fox\njumps over the lazy\ndog.\nNext line.\n\nNext paragraph.\n");
}

TEST(MarkdownScreenTest, WordsLongerThanARowAreCut) {
  EXPECT_EQ(Render("abcdefghijklmnopqrstuvwxyz", 11), "abcdefghij\nklmnopqrst\nuvwxyz\n");
}

TEST(MarkdownScreenTest, CjkTextBreaksAnywhereExceptAroundPunctuation) {
  // 18 columns hold nine characters. The tenth of the first row would be a comma, which must not begin a row.
  EXPECT_EQ(Render("一二三四五六七八九，十", 19), "一二三四五六七八\n九，十\n");
  // An opening bracket must not end a row.
  EXPECT_EQ(Render("一二三四五六七八（九十", 19), "一二三四五六七八\n（九十\n");
}

TEST(MarkdownScreenTest, HeadingsLoseTheirMarkersOnlyIfTheyHaveAStyle) {
  EXPECT_EQ(Render("# One\n\n### Three ###\ntext"), "One\n\nThree\ntext\n");
  EXPECT_EQ(Render("# One\n\n### Three ###\ntext", 40, false), "# One\n\n### Three\ntext\n");
  EXPECT_EQ(Render("Setext\n---\n"), "Setext\n");
}

TEST(MarkdownScreenTest, WithoutStylesEmphasisAndCodeKeepTheirMarkers) {
  EXPECT_EQ(Render("a **b** *c* `d` ~~e~~"), "a b c d ~~e~~\n");
  EXPECT_EQ(Render("a **b** *c* `d` ~~e~~", 40, false), "a **b** *c* `d` ~~e~~\n");
}

TEST(MarkdownScreenTest, ListsAreIndentedBelowTheirMarkers) {
  EXPECT_EQ(Render("- one with a text that wraps\n- two\n  - nested\n    1. deep\n\n- three\n\n9. nine\n10. ten", 20),
            "• one with a text\n  that wraps\n• two\n  • nested\n    1. deep\n• three\n\n9. nine\n10. ten\n");
}

TEST(MarkdownScreenTest, TasksShowTheirState) {
  EXPECT_EQ(Render("- [x] done\n- [ ] open\n"), "• [x] done\n• [ ] open\n");
}

TEST(MarkdownScreenTest, ItemsContinueAfterACodeBlockWithoutIndent) {
  EXPECT_EQ(Render("1. Install:\n   ```sh\n   apt install x\n     --yes\n   ```\n   Then:\n\n   - a\n2. Run\n"),
            "1. Install:\n```sh\napt install x\n  --yes\n```\n   Then:\n   • a\n2. Run\n");
}

TEST(MarkdownScreenTest, CodeThatBeginsAnItemFollowsItsMarker) {
  EXPECT_EQ(Render("1. ```sh\n   ls\n     -l\n   ```\n   Then:\n2. - ~~~\n     x\n     ~~~\n3. end\n"),
            "1.\n```sh\nls\n  -l\n```\n   Then:\n2. •\n~~~\nx\n~~~\n3. end\n");
  EXPECT_EQ(Render("> - ```\n>   x\n>   ```\n"), "│ •\n```\nx\n```\n");
}

TEST(MarkdownScreenTest, RowsOfListsAndQuotesFitTheScreen) {
  const std::string words = "some words that are wrapped several times because there are so many of them";
  std::string nested;
  std::string quotes;
  for (int level = 0; level < 12; ++level) {
    nested += std::string(2 * static_cast<size_t>(level), ' ') + (level % 3 == 2 ? "- [x] " : "- ") + words + "\n";
    quotes += "> ";
  }
  for (const std::string& text : {"- [ ] " + words, nested, quotes + words, std::string(60, ' ') + "- " + words}) {
    for (const int num_columns : {20, 40, 80}) {
      std::istringstream rows(Render(text, num_columns));
      for (std::string row; std::getline(rows, row);) EXPECT_LT(MaxTextColumns(row), num_columns) << row;
    }
  }
}

TEST(MarkdownScreenTest, DeepListsShowAllMarkers) {
  EXPECT_EQ(Render("- 1\n  - 2\n    - 3\n      - 4\n        - 5\n          - 6\n", 16),
            "• 1\n  • 2\n    • 3\n      • 4\n      • 5\n      • 6\n");
}

TEST(MarkdownScreenTest, QuotesHaveBars) {
  EXPECT_EQ(Render("> one\n> two\n>\n> - item\n>\n> > inner\n\nafter"),
            "│ one\n│ two\n│ • item\n│\n│ │ inner\n\nafter\n");
}

TEST(MarkdownScreenTest, TablesAreAligned) {
  EXPECT_EQ(Render("| Name | Mid | Right |\n|---|:-:|--:|\n| a | x | 1 |\n| 中文 | yy | 22 |\n"),
            "Name │ Mid │ Right\n─────┼─────┼──────\na    │  x  │     1\n中文 │ yy  │    22\n");
}

TEST(MarkdownScreenTest, ATableMayFollowALineOfText) {
  EXPECT_EQ(Render("Look:\na | b\n--|--\n1 | 2\n"), "Look:\na │ b\n──┼──\n1 │ 2\n");
}

TEST(MarkdownScreenTest, CellsWrapIfTheTableIsTooWide) {
  EXPECT_EQ(Render("| Key | Description |\n|---|---|\n| a | words that need more than one row here |\n", 30),
            "Key │ Description\n────┼────────────────────────\na   │ words that need more\n    │ than one row here\n");
}

TEST(MarkdownScreenTest, VeryNarrowTablesAreLists) {
  EXPECT_EQ(Render("| Key | Description | More |\n|---|---|---|\n| a long key | some words here | end |\n"
                   "| b | c | d |\n",
                   24),
            "Key: a long key\nDescription:\n  some words here\nMore: end\n\nKey: b\nDescription:\n  c\nMore: d\n");
}

TEST(MarkdownScreenTest, WithoutStylesTheNamesOfAListHaveNoStyle) {
  const ScreenSize size{24, 24};
  const std::string text = "| Key | Description | More |\n|---|---|---|\n| a long key | some words here | end |\n";
  const RenderOptions options = OptionsFor(size, false);
  const std::vector<Row> rows = RenderWhole(text, size, options);
  FrameWriter writer(size.num_rows, size.num_columns);
  EXPECT_EQ(writer.Draw(rows, {}).view(), TextOf(rows));
}

TEST(MarkdownScreenTest, CodeIsNeitherWrappedNorIndentedNorPadded) {
  const std::string line = "  int x = 1;\t// a comment that is longer than the row of this screen ";
  const ScreenSize size{24, 40};
  const std::vector<Row> rows = RenderWhole("```c++\n" + line + "\n\n\tend\n```\n", size, OptionsFor(size));
  EXPECT_EQ(TextOf(rows), "```c++\n" + line + "\n\n\tend\n```\n");
}

TEST(MarkdownScreenTest, IndentedCodeLosesOnlyItsIndent) {
  EXPECT_EQ(Render("text\n\n    one\n      two\n\n    three\nafter"), "text\n\none\n  two\n\nthree\nafter\n");
}

TEST(MarkdownScreenTest, UnclosedFencesAreCode) { EXPECT_EQ(Render("```\n*a*"), "```\n*a*\n"); }

TEST(MarkdownScreenTest, MathematicsStaysSource) {
  EXPECT_EQ(Render("a $x_1 * y_2$ b \\(a_i * b_i\\) c \\[z*z*z\\] $5 and $6", 80),
            "a $x_1 * y_2$ b \\(a_i * b_i\\) c \\[z*z*z\\] $5 and $6\n");
  EXPECT_EQ(Render("$$\na_1 * b_1 * c\n$$\ntext\n\\[\n  x^2\n\\]\n"), "$$\na_1 * b_1 * c\n$$\ntext\n\\[\n  x^2\n\\]\n");
}

TEST(MarkdownScreenTest, CodeInAQuoteOrAnItemIsUnchanged) {
  EXPECT_EQ(Render("> ~~~\n> \\(a*b\\) [1]: x\n> ~~~\n"), "~~~\n\\(a*b\\) [1]: x\n~~~\n");
  EXPECT_EQ(Render("- item\n\n      \\[a_b\\]\n      [1]: x\n"), "• item\n\n\\[a_b\\]\n[1]: x\n");
}

TEST(MarkdownScreenTest, DashesThatBeginNoTableStaySource) { EXPECT_EQ(Render("a\nb\n-|-\n"), "a\nb\n-|-\n"); }

TEST(MarkdownScreenTest, UnknownConstructsStaySource) {
  EXPECT_EQ(Render("<b>bold</b> <script>x</script>\n\n[1]: https://example.com\n\n[^1]: note\n\n:::warning", 60),
            "<b>bold</b> <script>x</script>\n\n[1]: https://example.com\n\n[^1]: note\n\n:::warning\n");
}

TEST(MarkdownScreenTest, EntitiesAreDecodedAndMadeSafe) {
  EXPECT_EQ(Render("&lt;a&gt; &amp;&nbsp;&#65; &#27;[31m &unknown;"), "<a> &\u00a0A <1b>[31m &unknown;\n");
}

TEST(MarkdownScreenTest, LinksShowTheirTargetUnlessTheTextIsTheTarget) {
  const std::string text =
      "[text](https://a.example/p) <https://b.example> [unsafe](javascript:x) ![pic](https://c.example/i)";
  EXPECT_EQ(Render(text, 200),
            "text (https://a.example/p) https://b.example unsafe (javascript:x) [image: pic] (https://c.example/i)\n");
  EXPECT_EQ(Render(text, 200, true, true),
            "text (a.example) https://b.example unsafe (javascript:x) [image: pic] (c.example)\n");
  EXPECT_EQ(Render("[https://good.example](https://bad.example/)", 200, true, true),
            "https://good.example (bad.example)\n");
}

TEST(MarkdownScreenTest, OnlySafeTargetsBecomeHyperlinks) {
  const std::string bytes = RenderBytes("[a](https://a.example/) [b](file:///x) [c](javascript:y)", true, true);
  EXPECT_NE(bytes.find("\x1b]8;id=0;https://a.example/\x1b\\"), std::string::npos);
  EXPECT_EQ(bytes.find("file:"), bytes.find("(file:///x)") + 1);
  EXPECT_EQ(bytes.find("javascript:"), bytes.find("(javascript:y)") + 1);
  EXPECT_EQ(RenderBytes("[a](https://a.example/)", true, false).find("\x1b]8"), std::string::npos);
}

TEST(MarkdownScreenTest, WithoutStylesTextThatIsDrawnOnceHasNoControlSequences) {
  EXPECT_EQ(RenderBytes("# a **b** `c`\n```c\nint x;\n```\n", false, false), "# a **b** `c`\n```c\nint x;\n```\n");
}

TEST(MarkdownScreenTest, CellsHaveTheStylesOfTheirText) {
  TerminalEmulator terminal(10, 40);
  terminal.Feed(AfterTerminalDriver(RenderBytes("**b** *i* `c`\n```py\nif x: # y\n```\n", true, false)));
  EXPECT_EQ(terminal.Row(0), "b i c");
  EXPECT_TRUE(terminal.Cell(0, 0).bold);
  EXPECT_FALSE(terminal.Cell(0, 1).bold);
  EXPECT_TRUE(terminal.Cell(0, 2).italic);
  EXPECT_EQ(terminal.Cell(0, 4).color, 6);
  EXPECT_EQ(terminal.Cell(2, 0).color, 5);
  EXPECT_EQ(terminal.Cell(2, 3).color, -1);
  for (int column = 0; column < 40; ++column) EXPECT_EQ(terminal.Cell(2, column).background, -1);
}

TEST(MarkdownScreenTest, TextThatNestsTooDeepIsPlain) {
  const std::string text = std::string(40, '>') + " x";
  EXPECT_EQ(Render(text, 80), text + "\n");
}

TEST(MarkdownScreenTest, TablesWithTooManyColumnsArePlain) {
  std::string head = "a";
  std::string rule = "-";
  for (int i = 0; i < 70; ++i) {
    head += "|a";
    rule += "|-";
  }
  EXPECT_EQ(Render(head + "\n" + rule + "\nb\n", 200), head + "\n" + rule + "\nb\n");
}

}  // namespace
}  // namespace vllm::app
