#include "app/editor/terminal_input.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

// Returns the keys and pastes that can be taken now, with pastes in brackets.
std::string Take(TerminalInput& input) {
  std::string taken;
  while (true) {
    if (input.HasKey()) {
      taken += input.TakeKey();
    } else if (input.HasPaste()) {
      taken += "[" + input.TakePaste().value_or("too long") + "]";
    } else {
      return taken;
    }
  }
}

TEST(TerminalInputTest, KeysPassUnchanged) {
  TerminalInput input;
  input.Feed("ab\x1b[A\x1bOB\x1b[13;2u\r");
  EXPECT_EQ(Take(input), "ab\x1b[A\x1bOB\x1b[13;2u\r");
}

TEST(TerminalInputTest, PasteIsOneText) {
  TerminalInput input;
  input.Feed("a\x1b[200~one\rtwo\r\nthree\x1b[31m\x1b[201~b");
  EXPECT_EQ(Take(input), "a[one\ntwo\nthree\x1b[31m]b");
}

TEST(TerminalInputTest, PasteMayArriveInAnyPieces) {
  const std::string bytes = "x\x1b[200~p\xC3\xA9\x1b[2\x1b\x1b[201~\x1b[Ay\xE4\xBD\xA0\x1b[200~\x1b[201~z";
  for (size_t size = 1; size < bytes.size(); ++size) {
    TerminalInput input;
    std::string taken;
    for (size_t i = 0; i < bytes.size(); i += size) {
      input.Feed(std::string_view(bytes).substr(i, size));
      taken += Take(input);
    }
    EXPECT_EQ(taken, "x[p\xC3\xA9\x1b[2\x1b]\x1b[Ay\xE4\xBD\xA0[]z") << size;
  }
}

TEST(TerminalInputTest, BytesThatCannotBeTextAreReplaced) {
  TerminalInput input;
  input.Feed(std::string("\x1b[200~a\0b\xFF\x1b[201~", 16));
  EXPECT_EQ(Take(input),
            "[a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD]");
}

TEST(TerminalInputTest, CharacterIsTakenWhole) {
  TerminalInput input;
  input.Feed("a\xE4\xBD");
  EXPECT_EQ(Take(input), "a");
  input.Feed("\xA0");
  EXPECT_EQ(Take(input), "\xE4\xBD\xA0");
}

TEST(TerminalInputTest, EscapeBeforeAnArrowKeyIsAlt) {
  TerminalInput input;
  input.Feed("\x1b\x1b[A\x1b\x1bOB\x1b\x1b[C\x1b\x1b");
  input.Feed("[D");
  EXPECT_EQ(Take(input),
            "\x1b[A\x1bOB\x1b"
            "f\x1b"
            "b");
}

TEST(TerminalInputTest, EscapesAreReleasedByFlush) {
  for (const std::string keys : {"\x1b", "\x1b\x1b"}) {
    TerminalInput input;
    input.Feed(keys);
    EXPECT_TRUE(input.IsWaitingForMore());
    EXPECT_EQ(Take(input), "");
    input.Flush();
    EXPECT_EQ(Take(input), keys);
    EXPECT_FALSE(input.IsWaitingForMore());
  }
}

TEST(TerminalInputTest, EndPasteKeepsWhatHasArrived) {
  TerminalInput input;
  input.Feed("\x1b[200~abc\x1b[20");
  EXPECT_TRUE(input.IsInPaste());
  input.EndPaste();
  EXPECT_FALSE(input.IsInPaste());
  EXPECT_EQ(Take(input), "[abc\x1b[20]");
}

TEST(TerminalInputTest, SearchTakesTheBeginningOfAPaste) {
  EXPECT_EQ(SearchText("a\tb\x1b[0m\nc"), "ab[0m");
  // A character of three bytes would end at byte 1,001.
  EXPECT_EQ(SearchText(std::string(998, 'x') + "\xE4\xBD\xA0y"), std::string(998, 'x'));
}

TEST(TerminalInputTest, TooLongPasteIsDropped) {
  const std::string longest(TerminalInput::kMaxPasteBytes, 'x');
  for (const size_t num_more : {0, 1, 1 << 20}) {
    TerminalInput input;
    input.Feed("\x1b[200~" + longest);
    input.Feed(std::string(num_more, 'x'));
    input.Feed("\x1b[201~k");
    EXPECT_TRUE(Take(input) == (num_more == 0 ? "[" + longest + "]k" : "[too long]k")) << num_more;
  }
}

}  // namespace
}  // namespace vllm::app
