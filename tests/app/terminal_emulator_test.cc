// Tests of the emulator itself, so that other tests can rely on it.
#include "tests/support/terminal_emulator.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

using Lines = std::vector<std::string>;

TEST(TerminalEmulatorTest, ShowsRowsWithoutTrailingBlanksAndTheCursor) {
  TerminalEmulator terminal(4, 10);
  terminal.Feed("one  \r\n\xE4\xBD\xA0x");
  EXPECT_EQ(terminal.Screen(), "one\n\xE4\xBD\xA0x\n");
  EXPECT_EQ(terminal.Rows(), (Lines{"one", "\xE4\xBD\xA0x", "", ""}));
  EXPECT_EQ(terminal.cursor(), (ScreenCursor{1, 3}));
}

TEST(TerminalEmulatorTest, RowsThatScrollOutAreInTheScrollback) {
  TerminalEmulator terminal(2, 10);
  terminal.Feed("a\r\nb\r\nc\r\nd");
  EXPECT_EQ(terminal.scrollback(), (Lines{"a", "b"}));
  EXPECT_EQ(terminal.Screen(), "c\nd\n");
  EXPECT_EQ(terminal.AllRows(), (Lines{"a", "b", "c", "d"}));
}

TEST(TerminalEmulatorTest, ReportsModesTitleAndUnknownCommands) {
  TerminalEmulator terminal(2, 10);
  const TerminalState before = terminal.state();
  EXPECT_EQ(before, TerminalState());
  terminal.Feed("\x1b[?2004h\x1b[?1049h\x1b[?1000h\x1b]2;hello\x07\x1b]52;c;aGk=\x07\x1b]4;1;#000000\x07\x1b[>1u");
  const TerminalState state = terminal.state();
  EXPECT_TRUE(state.bracketed_paste);
  EXPECT_TRUE(state.alternate_screen);
  EXPECT_TRUE(state.mouse);
  EXPECT_EQ(state.title, "hello");
  EXPECT_EQ(terminal.commands(), (Lines{"OSC 52;c;aGk=", "OSC 4;1;#000000", "CSI >1u"}));
  terminal.Feed("\x1b[?2004l\x1b[?1049l\x1b[?1000l\x1b]2;\x07");
  EXPECT_EQ(terminal.state(), before);
}

TEST(TerminalEmulatorTest, CellsHaveAttributes) {
  TerminalEmulator terminal(2, 10);
  terminal.Feed("\x1b[1;31ma\x1b[0;3;4mb\x1b[0mc");
  EXPECT_TRUE(terminal.Cell(0, 0).bold);
  EXPECT_EQ(terminal.Cell(0, 0).color, 1);
  EXPECT_TRUE(terminal.Cell(0, 1).italic);
  EXPECT_TRUE(terminal.Cell(0, 1).underline);
  EXPECT_EQ(terminal.Cell(0, 1).color, -1);
  EXPECT_EQ(terminal.Cell(0, 2).text, "c");
  EXPECT_FALSE(terminal.Cell(0, 2).italic);
}

TEST(TerminalEmulatorTest, AnswersQueries) {
  TerminalEmulator terminal(5, 10);
  terminal.Feed("\r\nab\x1b[6n");
  EXPECT_EQ(terminal.TakeReplies(), "\x1b[2;3R");
  EXPECT_EQ(terminal.TakeReplies(), "");
}

}  // namespace
}  // namespace vllm::app
