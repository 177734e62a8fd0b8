// Types into the chat on terminals of several sizes and compares what an emulator shows. The answers are those of
// scripted models.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "app/cli/slash_command_table.h"
#include "tests/program/chats_test.h"
#include "tests/support/scripted_model.h"

namespace vllm::app {
namespace {

using Rows = std::vector<std::string>;
using testing_support::WriteScriptedModel;

struct Size {
  int columns;
  int rows;
};

// GoogleTest calls this to print the size if a test fails.
void PrintTo(const Size& size, std::ostream* stream) { *stream << size.columns << "x" << size.rows; }

class ChatScreenTest : public ChatsProgramTest, public testing::WithParamInterface<Size> {
 protected:
  PtyProgram& Start(const std::string& model, Flags flags = {}) {
    PtyOptions options;
    options.environment = As("me").environment;
    options.environment["XDG_CACHE_HOME"] = options.environment["XDG_STATE_HOME"] = temp_.path() + "/me";
    options.environment["EDITOR"] = editor_;
    options.environment["VISUAL"] = "";
    options.num_columns = GetParam().columns;
    options.num_rows = GetParam().rows;
    const Flags base = {"chat", "-m", model, "--no-stats-line", "--quiet", "-t", "0"};
    flags.insert(flags.begin(), base.begin(), base.end());
    chat_ = std::make_unique<PtyProgram>(flags, options);
    ExpectPrompt(">>>");
    return *chat_;
  }
  // Waits for an empty prompt, or one with a draft of one row.
  void ExpectPrompt(const std::string& row) {
    const auto is_shown = [&](const TerminalEmulator& terminal) {
      return terminal.state().bracketed_paste && terminal.Row(terminal.cursor().row) == row;
    };
    EXPECT_TRUE(chat_->WaitForScreen(is_shown)) << Shown();
  }
  // Types a message, and waits for the next prompt.
  void Say(const std::string& message) {
    const size_t before = chat_->output().size();
    chat_->Send(message + "\r");
    const auto is_done = [&](const TerminalEmulator& terminal) {
      return chat_->output().find("\x1b[?2004l", before) != std::string::npos && terminal.state().bracketed_paste &&
             terminal.Row(terminal.cursor().row) == ">>>";
    };
    ASSERT_TRUE(chat_->WaitForScreen(is_done)) << message << "\n" << Shown();
  }
  void Quit() {
    chat_->Send("\x04");
    EXPECT_EQ(chat_->WaitForExit(), 0) << Shown();
    EXPECT_TRUE(chat_->TerminalIsRestored());
    EXPECT_EQ(chat_->terminal().state(), TerminalState());
  }
  std::string Shown() const {
    std::string text;
    for (const std::string& row : chat_->terminal().AllRows()) text += row + "\n";
    return text;
  }
  // Returns the rows after the first one that begins with this text, which must exist.
  Rows RowsAfter(const std::string& begin) const {
    Rows rows = chat_->terminal().AllRows();
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.starts_with(begin); });
    EXPECT_NE(at, rows.end()) << Shown();
    return at == rows.end() ? Rows() : Rows(at + 1, rows.end());
  }

  std::string editor_ = "true";
  std::unique_ptr<PtyProgram> chat_;
};

// Returns the path of a program that writes `text` to the file that it is called with.
std::string EditorThatWrites(const TempDirectory& directory, const std::string& text) {
  const std::string file = directory.Write("edit.sh", "#!/bin/sh\nprintf '" + text + "' > \"$1\"\n");
  chmod(file.c_str(), 0700);
  return file;
}

const char kReport[] =
    "# Report\n\n"
    "Some **bold** and *slanted* words with `code`, and enough of them for a second row on a terminal of eighty "
    "columns.\n"
    "\n- \u4f60\u597d\uff0c\u4e16\u754c\n- \u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd\n- cafe\u0301 "
    "\U0001f600\n\n"
    "| name | value |\n|---|---|\n| alpha | 1 |\n\n"
    "```py\nx = 1  # this line of code is never cut\n```\n\nThe end.\n";

TEST_P(ChatScreenTest, MarkdownIsFittedToTheTerminal) {
  const std::string model = WriteScriptedModel(temp_.path() + "/model", kReport);
  Start(model);
  Say("go");
  const int columns = GetParam().columns;
  Rows expected = {"Report", ""};
  const Rows paragraph =
      columns == 20 ? Rows{"Some bold and",     "slanted words with", "code, and enough of",
                           "them for a second", "row on a terminal",  "of eighty columns."}
      : columns == 80
          ? Rows{"Some bold and slanted words with code, and enough of them for a second row on a",
                 "terminal of eighty columns."}
          : Rows{
                "Some bold and slanted words with code, and enough of them for a second row on a terminal of eighty "
                "columns."};
  const Rows lists = {"", "• 你好，世界",  "• שלום עולם",   "• cafe\u0301 😀",
                      "", "name  │ value", "──────┼──────", "alpha │ 1",
                      "", "```py"};
  // The terminal breaks long lines of code. The program does not, so a copy with the mouse has one line.
  const Rows code = columns == 20 ? Rows{"x = 1  # this line o", "f code is never cut"}
                                  : Rows{"x = 1  # this line of code is never cut"};
  const Rows end = {"```", "", "The end.", ">>>"};
  for (const Rows& part : {paragraph, lists, code, end}) expected.insert(expected.end(), part.begin(), part.end());
  EXPECT_EQ(RowsAfter(">>> go"), expected);
  Quit();
  EXPECT_EQ(Branch(Show("me"))[1][1], kReport);
}

TEST_P(ChatScreenTest, EveryLineOfAnAnswerIsShownIfTheTerminalIsResizedMeanwhile) {
  // The answer is longer than the buffer of the terminal, so the program is still writing when the size changes.
  std::string answer;
  constexpr int kNumLines = 1500;
  for (int i = 0; i < kNumLines; ++i) answer += "line " + std::to_string(i) + "\n\n";
  const std::string model = WriteScriptedModel(temp_.path() + "/model", answer, 40);
  PtyProgram& chat = Start(model);
  chat.Send("go\r");
  const Size sizes[] = {{20, 5}, {200, 60}, {33, 7}, {80, 24}, {50, 12}, {GetParam().columns, GetParam().rows}};
  int next = 50;
  for (const Size& size : sizes) {
    ASSERT_TRUE(chat.WaitFor("line " + std::to_string(next))) << Shown();
    chat.Resize(size.rows, size.columns);
    next += 50;
  }
  ExpectPrompt(">>>");
  int expected = 0;
  for (const std::string& row : RowsAfter(">>> go")) {
    if (!row.starts_with("line ")) continue;
    const int number = std::stoi(row.substr(5));
    // The rows that were not final when the size changed are drawn again below.
    EXPECT_LE(number, expected);
    expected = std::max(expected, number + 1);
  }
  EXPECT_EQ(expected, kNumLines) << Shown();
  // Rows that were drawn after the last change of the size occur once.
  const Rows rows = RowsAfter("line " + std::to_string(next + 300));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), "line " + std::to_string(next + 301)), 1);
  Quit();
  EXPECT_EQ(Branch(Show("me"))[1][1], answer);
}

TEST_P(ChatScreenTest, MessagesTypedInEveryWayAreStored) {
  editor_ = EditorThatWrites(temp_, "from\\nthe editor\\n");
  const std::string model = WriteScriptedModel(temp_.path() + "/model", "Yes.");
  const std::string file = temp_.Write("notes.txt", "notes\n");
  PtyProgram& chat = Start(model);
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += (i > 0 ? "\n" : "") + std::string("line ") + std::to_string(i);
  const std::string others =
      "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u4f60\u597d \u05e9\u05dc\u05d5\u05dd cafe\u0301";
  Say("one\x1b\rtwo\nthree");               // Alt-Enter and Ctrl-J
  Say("\"\"\"a\r\rb\"\"\"");                // Enter within a block
  Say("first \\\rsecond");                  // a backslash at the end of a line
  Say("\x1b[200~pasted\n\ttext\x1b[201~");  // a paste
  Say(others);
  Say("xx\x7f\x1b[D-\x1b[C+");  // Backspace and arrows
  Say("\x1b[A!");               // the previous message and one more character
  Say("//help");                // a slash
  Say("shift\x1b[13;2uenter");  // Shift-Enter as CSI u
  Say(lines);
  chat.Send("\x07");  // Ctrl-G
  ASSERT_TRUE(chat.WaitFor("the editor")) << Shown();
  Say("");
  chat.Send(
      "\x12"
      "shift");  // Ctrl-R
  Say("\x05.");
  chat.Send("cleared");
  ExpectPrompt(">>> cleared");
  chat.Send("\x03");  // Ctrl-C
  ExpectPrompt(">>>");
  chat.Send("\x1b\x1b");  // Esc Esc changes the last question
  ASSERT_TRUE(chat.WaitFor("/edit")) << Shown();
  ExpectPrompt("... enter");
  chat.Send(
      "\x15"
      "changed");
  ExpectPrompt("... changed");
  Say("");
  chat.Send("look at @" + file.substr(0, file.size() - 6) + "\t");  // completes the name of the file
  ASSERT_TRUE(chat.WaitFor("txt")) << Shown();
  Say("");
  Quit();

  Rows said;
  const Json stored = Branch(Show("me"));
  for (size_t i = 0; i < stored.size(); i += 2) said.push_back(stored[i][1]);
  const Rows expected = {"one\ntwo\nthree",
                         "a\n\nb",
                         "first \nsecond",
                         "pasted\n\ttext",
                         others,
                         "-x+",
                         "-x+!",
                         "/help",
                         "shift\nenter",
                         lines,
                         "from\nthe editor",
                         "shift.\nchanged",
                         "look at " + file + " \n\n" + file + ":\n```\nnotes\n```"};
  EXPECT_EQ(said, expected);
}

TEST_P(ChatScreenTest, EveryCommandReturnsToThePrompt) {
  const std::string model = WriteScriptedModel(temp_.path() + "/model", "Text\n\n```py\nx = 1\n```\n");
  PtyProgram& chat = Start(model, {"-n", "3"});
  const TerminalState at_prompt = chat.terminal().state();
  const std::map<std::string, std::string> arguments = {{"/save-code", " 1 " + temp_.path() + "/code.py"},
                                                        {"/export", " " + temp_.path() + "/chat.md"},
                                                        {"/file", " " + temp_.Write("notes.txt", "notes\n")},
                                                        {"/search", " Text"},
                                                        {"/pick", " 1"},
                                                        {"/set", " temperature 0.5"}};
  for (const SlashCommandInfo& command : SlashCommandTable()) {
    const std::string name(command.name);
    if (name == "/exit") continue;
    ASSERT_NO_FATAL_FAILURE(Say("Tell me more"));
    const auto argument = arguments.find(name);
    const std::string line = name + (argument == arguments.end() ? "" : argument->second);
    if (name == "/edit" || name == "/file") {  // the next prompt has a draft
      chat.Send(line + "\r");
      ASSERT_TRUE(chat.WaitFor(name == "/edit" ? "[the next" : "[/")) << Shown();
      const auto has_draft = [](const TerminalEmulator& t) {
        return t.state().bracketed_paste && t.cursor().column > 0 && t.Row(t.cursor().row) != ">>>";
      };
      ASSERT_TRUE(chat.WaitForScreen(has_draft)) << Shown();
      chat.Send("\x03");
    } else if (name == "/tree" || name == "/resume" || name == "/engine") {
      chat.Send(line + "\r");
      ASSERT_TRUE(chat.WaitForScreen([](const TerminalEmulator& t) { return t.state().alternate_screen; })) << name;
      chat.Send("q");
    } else {
      ASSERT_NO_FATAL_FAILURE(Say(line));
    }
    ExpectPrompt(">>>");
    EXPECT_EQ(chat.terminal().state(), at_prompt) << name;
  }
  Quit();
}

TEST_P(ChatScreenTest, UnknownCommandGetsASuggestion) {
  PtyProgram& chat = Start(WriteScriptedModel(temp_.path() + "/model", "Yes."));
  ASSERT_NO_FATAL_FAILURE(Say("/serach x"));
  EXPECT_TRUE(chat.WaitFor("did you mean /search?")) << Shown();
  Quit();
}

TEST_P(ChatScreenTest, HostileAnswerChangesNoStateOfTheTerminal) {
  const std::string hostile =
      "A \x1b[31m red \x1b[?1049h screen \x1b[?1000h mouse \x1b]0;title\x07 and \x1b]52;c;aGk=\x07 clipboard "
      "\x1b]4;1;rgb:00/00/00\x07 palette \xc2\x9b"
      "5m \xc2\x9d"
      "0;t\xc2\x9c \u202e bidi \u200b zero \U000e0041 tag \x1b"
      "c "
      "\x1b[2J \x1b[6n [a](http://x.example/\x1b]0;t\x07) \x1bP+q\x1b\\ \x0e \x0f \x07 \b\b\b \r over \xff broken "
      "\xe2\x80 "
      "cut.\n\n```\x1b[31m\ncode \x1b[5A up\n```\n\n| \x1b[1m | b |\n|---|---|\n| 1 | \x1b[3J |\n\nDone.";
  const std::string model = WriteScriptedModel(temp_.path() + "/model", hostile, 3);
  PtyProgram& chat = Start(model);
  const TerminalState at_prompt = chat.terminal().state();
  for (const char* command : {"go", "/raw", "/regen", "/thinking", "/search red", "/info"}) {
    ASSERT_NO_FATAL_FAILURE(Say(command));
    EXPECT_EQ(chat.terminal().state(), at_prompt) << command;
  }
  EXPECT_EQ(chat.terminal().num_bells(), 0);
  for (const std::string& command : chat.terminal().commands()) {
    EXPECT_TRUE(command.starts_with("OSC 8;") || command.find("2026") != std::string::npos) << command;
  }
  chat.Send("/tree\r");
  ASSERT_TRUE(chat.WaitForScreen([](const TerminalEmulator& t) { return t.state().alternate_screen; }));
  chat.Send("q");
  ExpectPrompt(">>>");
  EXPECT_EQ(chat.terminal().state(), at_prompt);
  Quit();
}

INSTANTIATE_TEST_SUITE_P(Sizes, ChatScreenTest, testing::Values(Size{80, 24}, Size{20, 5}, Size{200, 60}),
                         [](const auto& test) {
                           return std::to_string(test.param.columns) + "x" + std::to_string(test.param.rows);
                         });

}  // namespace
}  // namespace vllm::app
