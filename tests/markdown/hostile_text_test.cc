// Text of a model that tries to control the terminal, or to make rendering slow, must only show characters.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/markdown/control_sequences.h"
#include "tests/markdown/rendered_screen.h"

namespace vllm::app {
namespace {

// Pieces of hostile texts: control sequences of terminals, invisible characters, broken UTF-8, and Markdown that could
// hide them.
const std::vector<std::string>& Pieces() {
  static const std::vector<std::string> pieces = {
      // clang-format off
      "\x1b[31m", "\x1b[2J", "\x1b[3J", "\x1b[?1049h", "\x1b[?1000h", "\x1b[?2004h", "\x1b[?25l", "\x1b[?5h", "\x1b[6n",
      "\x1b]0;title\x07", "\x1b]2;title\x1b\\", "\x1b]4;1;rgb:00/00/00\x07", "\x1b]10;#123456\x07", "\x1b]52;c;aGk=\x07",
      "\x1b]8;;http://x\x1b\\", "\x1b]8;;\x1b\\", "\x1bP+q\x1b\\", "\x1b_x\x1b\\", "\x1b^x\x1b\\", "\x1b" "c", "\x1b(0",
      "\x1b[>1u", "\x1b[!p", "\x1b#8", "\x1b[1;5r", "\x1b[5A", "\x1b[s", "\x1b[100;100H", "\x1b[4h", "\x1b", "\x9b" "31m",
      "\xc2\x9b" "31m", "\xc2\x9d" "0;t\xc2\x9c", "\x90", "\xc2\x85", "\x07", "\b\b\b", "\r", "\x0e", "\x0f", "\x7f", "\x05",
      "\x0b", "\x0c", std::string(1, '\0'),
      "\u202e", "\u2066", "\u200b", "\u200d", "\u00ad", "\ufeff", "\u2028", "\u115f", "\U000e0041", "\U000e0100", "\ufe0f",
      "\xff", "\xc3", "\xe2\x80", "\xf0\x9f", "\xed\xa0\x80", "\xc0\x9b", "\xf4\x90\x80\x80",
      "&#27;[31m", "&#x9b;31m", "&#155;", "&#8238;", "&#7;", "&#13;", "&#0;", "&#xE0041;", "&NewLine;",
      "[a](http://x.example/\x1b]0;t\x07)", "[a](<http://x.example/ \x1b[2J>)", "[\x1b[5m](javascript:alert(1))",
      "![\x1b[31m](file:///etc/passwd)", "<http://a.example/\x1b>", "[x](http://\u0430.example/&#27;)", "`\x1b[31m`",
      "```\x1b[31m\n", "```python\n", "```\n", "~~~\x1b]52;c;aGk=\x07\n", "    \x1b[2Jcode\n", "| \x1b[1m | b |\n|---|---|\n",
      "| \x9b" "1m | \r |\n", "$\x1b[31m$", "$$\n\x1b[31m\n$$\n", "\\(\x1b[31m\\)", "# \x1b[31m\n", "> \x1b[31m\n",
      "- \x1b[31m\n", "- [\x1b] x\n", "1. \r\n", "[\x1b]: http://x\n", "<b\x1b[31m>", "\\\x1b", "**\x1b[1m**", "~~\x07~~",
      "\n", "\n\n", " ", "text ", "word", "\t", "**", "`", "[", "](", ")", "|", "中文", "e\u0301", "👨\u200d👩\u200d👧",
      // clang-format on
  };
  return pieces;
}

std::string HostileText(std::mt19937& random) {
  std::string text;
  switch (random() % 8) {
    case 0: {  // a bomb: one piece many times
      const std::string& piece = Pieces()[random() % Pieces().size()];
      for (size_t i = random() % 100; i > 0; --i) text += piece;
      return text;
    }
    case 1:  // random bytes
      for (size_t i = random() % 300; i > 0; --i) text += static_cast<char>(random() % 256);
      return text;
    default:
      for (size_t i = random() % 30; i > 0; --i) text += Pieces()[random() % Pieces().size()];
      return text;
  }
}

TEST(HostileTextTest, TenThousandTextsDoNotChangeTheTerminal) {
  std::mt19937 random(20);
  const ScreenSize sizes[] = {{24, 80}, {5, 20}};
  for (const ScreenSize& size : sizes) {
    TerminalEmulator terminal(size.num_rows, size.num_columns);
    const TerminalState before = terminal.state();
    for (int i = 0; i < 5000; ++i) {
      const std::string text = HostileText(random);
      const bool has_links = random() % 2 == 0;
      const RenderOptions options = OptionsFor(size, random() % 4 != 0, has_links);
      const size_t max_piece = 1 + random() % 100;
      const std::string bytes = StreamBytes(text, size, options, [&] { return 1 + random() % max_piece; });
      ASSERT_EQ(UnknownSequences(bytes), "") << testing::PrintToString(text);
      terminal.Feed(AfterTerminalDriver(bytes));
      ASSERT_EQ(terminal.state(), before) << testing::PrintToString(text);
      ASSERT_EQ(terminal.TakeReplies(), "") << testing::PrintToString(text);
      ASSERT_EQ(terminal.num_bells(), 0) << testing::PrintToString(text);
      ASSERT_EQ(terminal.cursor().column, 0) << testing::PrintToString(text);
      // The text after it has no style.
      terminal.Feed("x");
      const ScreenCell cell = terminal.Cell(terminal.cursor().row, 0);
      ASSERT_TRUE(cell.text == "x" && !cell.bold && !cell.italic && !cell.underline && !cell.strike &&
                  cell.color == -1 && cell.background == -1)
          << testing::PrintToString(text);
      terminal.Feed("\r\x1b[K");
    }
    for (const std::string& command : terminal.commands()) {
      ASSERT_TRUE(command.starts_with("OSC 8;") || command.find("2026") != std::string::npos) << command;
    }
  }
}

TEST(HostileTextTest, LinksOfTheTerminalHaveOnlyTargetsThatAreSafe) {
  std::mt19937 random(21);
  const ScreenSize size;
  TerminalEmulator terminal(size.num_rows, size.num_columns);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes =
        StreamBytes(HostileText(random), size, OptionsFor(size, true, true), [&] { return 1 + random() % 40; });
    for (size_t at = bytes.find(sequences::kOpenLink); at != std::string::npos;
         at = bytes.find(sequences::kOpenLink, at + 1)) {
      const size_t target = bytes.find(';', at + sequences::kOpenLink.size()) + 1;
      const std::string_view uri = std::string_view(bytes).substr(target);
      EXPECT_TRUE(uri.starts_with("http://") || uri.starts_with("https://") || uri.starts_with("mailto:"));
    }
  }
}

// The work and the tail are bounded for each piece of the text. A quadratic algorithm would take minutes here.
TEST(HostileTextTest, LargeTextsAreRenderedInPieces) {
  const ScreenSize size;
  const auto repeat = [](const std::string& text, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += text;
    return all;
  };
  const std::vector<std::string> texts = {
      repeat("[", 1 << 20),
      repeat("x", 1 << 20),
      repeat("word ", 100000),
      repeat(">", 10000) + " x\n",
      repeat("- ", 10000) + "x\n",
      "```python\n" + repeat("'", 1 << 20),
      repeat("\\(", 50000),
      repeat("*a **b _c ", 20000),
      "|a|b|\n|-|-|\n" + repeat("|1|2|\n", 50000),
      repeat("[a](b) ", 20000),
      repeat("<a ", 30000),
      repeat("a\u0301", 50000),
      repeat(" ", 1 << 20) + "x\n",
      repeat("- a\n", 50000),
      repeat("$a ", 30000),
      repeat("`", 100000),
      "|a" + repeat("|a", 3000) + "\n|-" + repeat("|-", 3000) + "\n" + repeat("|b\n", 3000),
  };
  for (const std::string& text : texts) {
    MarkdownRenderer renderer(OptionsFor(size), size.num_rows - 2);
    size_t num_bytes = 0;
    for (size_t i = 0; i < text.size(); i += 1000) {
      renderer.Feed(std::string_view(text).substr(i, 1000));
      for (const Row& row : renderer.TakeFinished()) num_bytes += row.Text().view().size();
      ASSERT_LE(renderer.Tail().size(), 80u) << text.substr(0, 20);
    }
    renderer.Finish();
    for (const Row& row : renderer.TakeFinished()) num_bytes += row.Text().view().size();
    EXPECT_GT(num_bytes, 0u);
  }
}

}  // namespace
}  // namespace vllm::app
