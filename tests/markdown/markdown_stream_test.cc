// Text that is streamed in random pieces, with a frame after each, must leave the same rows on the terminal as text
// that is rendered at once and printed: each row once, on the screen or in the scrollback.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "app/markdown/answer_display.h"
#include "tests/markdown/rendered_screen.h"

namespace vllm::app {
namespace {

constexpr std::array<ScreenSize, 4> kSizes = {{{24, 80}, {5, 20}, {60, 200}, {10, 40}}};

constexpr std::string_view kAnswer = R"(# Title of the answer

A paragraph with **bold words**, *emphasis*, `code` and a [link](https://example.com/path) that wraps on most screens.
A second line, and $x_1$ with \(a_b\).

1. First:
   ```python
   def f(x):
       """doc"""
       return x + 1  # a comment that is longer than a narrow screen, so that the terminal wraps this line of code
   ```
2. Second

   with a paragraph
   - nested
   - [x] done

> A quote
> of two lines

| Name | Value |
|------|------:|
| one  | 1     |
| two words that are longer | 22222 |

中文字符（測試），以及更多的文字，這樣就需要換行了。 😀 e)"
                                     "\u0301"
                                     R"( ok

$$
\int x^2
$$

---
    indented code

Last line without an end)";

// Returns a text that is made of constructs of Markdown and pieces of them.
std::string RandomMarkdown(std::mt19937& random) {
  static const std::vector<std::string> pieces = {
      "# Head\n",
      "\n",
      "\n\n",
      "- item one\n",
      "  - nested\n",
      "1. num\n",
      "   ```python\n",
      "2. ```sh\n",
      "- [x] a long task whose words are wrapped below each other on most of the screens\n",
      "        - a deeper item whose words are wrapped too, on most of the screens\n",
      "```\n",
      "    code()\n",
      "> quote **b\n",
      ">> deep\n",
      "| a | b |\n",
      "|---|---|\n",
      "| 1 | 22222222222222 33333 |\n",
      "**bold** and *it*",
      "`code` ",
      "a long line of words that will be wrapped at some place because it is long ",
      "中文字符（測試），",
      "[l](http://x.example) ",
      "$$\nx^2\n$$\n",
      "\\(a_b\\) ",
      "***\n",
      "---\n",
      "===\n",
      "hello\n",
      "\t",
      "  ",
      "x",
      "😀 ",
      "e\u0301",
      "&lt;",
      "~~~\n",
      "1) p\n",
      "* star\n",
      "\\",
      "`",
      "**",
      "_",
      "[",
      "](",
      "!",
      "$",
      "\r\n",
      "\r",
      "```",
      "- [ ] t\n",
      "int x = 1; // a long comment that is wider than the width of a small screen\n"};
  std::string text;
  for (size_t i = 1 + random() % 40; i > 0; --i) text += pieces[random() % pieces.size()];
  return text;
}

void ExpectStreamedLikeWhole(std::string_view text, const ScreenSize& size, std::mt19937& random) {
  const RenderOptions options = OptionsFor(size, random() % 2 == 0, random() % 2 == 0);
  const size_t max_piece = 1 + random() % 12;
  TerminalEmulator streamed(size.num_rows, size.num_columns);
  streamed.Feed(AfterTerminalDriver(StreamBytes(text, size, options, [&] { return 1 + random() % max_piece; })));
  TerminalEmulator whole(size.num_rows, size.num_columns);
  whole.Feed(AfterTerminalDriver(TextOf(RenderWhole(text, size, options))));
  EXPECT_EQ(streamed.AllRows(), whole.AllRows()) << "columns: " << size.num_columns << "\n" << text;
  EXPECT_EQ(streamed.cursor(), whole.cursor());
}

TEST(MarkdownStreamTest, AnAnswerLooksTheSameHoweverItArrives) {
  std::mt19937 random(1);
  for (const ScreenSize& size : kSizes) {
    for (int i = 0; i < 25; ++i) ExpectStreamedLikeWhole(kAnswer, size, random);
  }
}

TEST(MarkdownStreamTest, RandomMarkdownLooksTheSameHoweverItArrives) {
  std::mt19937 random(2);
  for (int i = 0; i < 150; ++i) {
    const std::string text = RandomMarkdown(random);
    for (const ScreenSize& size : kSizes) ExpectStreamedLikeWhole(text, size, random);
  }
}

TEST(MarkdownStreamTest, BlocksTallerThanTheScreenAppearOnce) {
  std::mt19937 random(3);
  std::string paragraph;
  std::string list = "- ";
  std::string table = "| a | b |\n|---|---|\n";
  for (int i = 0; i < 200; ++i) {
    paragraph += "word" + std::to_string(i) + (i % 7 == 0 ? " **bold** " : " ");
    list += "item" + std::to_string(i) + (i % 9 == 0 ? "\n  - nested " : " ");
    table += "| row " + std::to_string(i) + " | some text that may wrap |\n";
  }
  for (const std::string& text : {paragraph, list, table, "> " + paragraph}) {
    for (const ScreenSize& size : kSizes) ExpectStreamedLikeWhole(text, size, random);
  }
}

TEST(MarkdownStreamTest, LinesOfCodeAreByteEqualToTheSource) {
  std::mt19937 random(4);
  for (const ScreenSize& size : kSizes) {
    std::string source;
    for (int i = 0; i < 40; ++i) {
      source += std::string(random() % 12, ' ') + "call(" + std::string(random() % 100, 'x') + ", \"s\");\n";
    }
    const std::string text = "```cpp\n" + source + "```\n";
    const RenderOptions options = OptionsFor(size);
    TerminalEmulator terminal(size.num_rows, size.num_columns);
    terminal.Feed(AfterTerminalDriver(StreamBytes(text, size, options, [&] { return 1 + random() % 5; })));
    // The terminal cuts long lines at its width, and the emulator gives its rows without blanks at the end.
    std::string expected;
    std::string line;
    for (const char c : text) {
      if (c == '\n' || static_cast<int>(line.size()) == size.num_columns) {
        expected += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line.clear();
      }
      if (c != '\n') line += c;
    }
    std::string shown;
    for (const std::string& row : terminal.AllRows()) shown += row + "\n";
    EXPECT_EQ(shown, expected);
  }
}

TEST(MarkdownStreamTest, FinishedRowsAreNotDrawnAgain) {
  const ScreenSize size{24, 80};
  MarkdownRenderer renderer(OptionsFor(size), size.num_rows - 2);
  FrameWriter writer(size.num_rows, size.num_columns);
  renderer.Feed("first paragraph\n\nsecond");
  std::vector<Row> finished = renderer.TakeFinished();
  writer.Draw(std::move(finished), renderer.Tail());
  renderer.Feed(" paragraph\n");
  finished = renderer.TakeFinished();
  const std::string bytes(writer.Draw(std::move(finished), renderer.Tail()).view());
  EXPECT_EQ(bytes, " paragraph");
}

TEST(MarkdownStreamTest, AnUnchangedTailWritesNothing) {
  FrameWriter writer(24, 80);
  Row row;
  row.Add(SafeText("text"), {});
  EXPECT_FALSE(writer.Draw({}, {row}).empty());
  EXPECT_TRUE(writer.Draw({}, {row}).empty());
}

TEST(MarkdownStreamTest, AfterAResizeTheTailIsDrawnBelow) {
  ScreenSize size{10, 40};
  TerminalEmulator terminal(size.num_rows, size.num_columns);
  MarkdownRenderer renderer(OptionsFor(size), size.num_rows - 2);
  FrameWriter writer(size.num_rows, size.num_columns);
  const auto draw = [&] {
    std::vector<Row> finished = renderer.TakeFinished();
    terminal.Feed(AfterTerminalDriver(writer.Draw(std::move(finished), renderer.Tail()).view()));
  };
  renderer.Feed("done\n\none two three four five six seven");
  draw();
  terminal.Feed(AfterTerminalDriver(writer.Leave().view()));
  size = {10, 20};
  terminal.Resize(size.num_rows, size.num_columns);
  writer.Resize(size.num_rows, size.num_columns);
  renderer.Resize(size.num_columns - 1, size.num_columns, size.num_rows - 2);
  draw();
  renderer.Feed(" eight");
  draw();
  renderer.Finish();
  draw();
  std::vector<std::string> rows = terminal.AllRows();
  ASSERT_GE(rows.size(), 3u);
  EXPECT_EQ(rows[0], "done");
  EXPECT_EQ(std::vector<std::string>(rows.end() - 2, rows.end()),
            (std::vector<std::string>{"five six seven", "eight"}));
}

}  // namespace
}  // namespace vllm::app
