// Types into LineEditor on a pseudo-terminal and compares what the terminal shows.
#include "tests/editor/line_editor_test.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>

namespace vllm::app {
namespace {

TEST_F(LineEditorTest, TypedTextIsShownAndSent) {
  PtyProgram& editor = Start();
  editor.Send("hello");
  ExpectScreen(">>> hello\n");
  EXPECT_EQ(editor.terminal().cursor(), (ScreenCursor{0, 9}));
  editor.Send("\r");
  ExpectScreen(">>> hello\n>>>\n");
  EXPECT_EQ(Results(1), nlohmann::json({"hello"}));
  editor.Send("\x04");
  EXPECT_EQ(editor.WaitForExit(), 0);
  EXPECT_TRUE(editor.TerminalIsRestored());
  EXPECT_EQ(editor.terminal().state(), TerminalState());
}

TEST_F(LineEditorTest, OnlyBracketedPasteIsSwitchedOn) {
  PtyProgram& editor = Start();
  editor.Send("x");
  ExpectScreen(">>> x\n");
  TerminalState expected;
  expected.bracketed_paste = true;
  EXPECT_EQ(editor.terminal().state(), expected);
  EXPECT_EQ(editor.terminal().commands(), Lines());
  EXPECT_EQ(editor.terminal().num_bells(), 0);
}

TEST_F(LineEditorTest, EveryNewlineKeyInsertsALine) {
  PtyProgram& editor = Start();
  editor.Send("a\x1b\rb\nc\x1b[13;2ud\x1b[27;2;13~e\\\rf");
  ExpectScreen(">>> a\n... b\n... c\n... d\n... e\n... f\n");
  editor.Send("\r");
  EXPECT_EQ(Results(1), nlohmann::json({"a\nb\nc\nd\ne\nf"}));
}

TEST_F(LineEditorTest, BlockIsSentWithoutItsMarkers) {
  PtyProgram& editor = Start();
  editor.Send("\"\"\"\rone\rtwo\"\"\"");
  ExpectScreen(">>> \"\"\"\n... one\n... two\"\"\"\n");
  editor.Send("\r\"\"\"three\"\"\"\r");
  EXPECT_EQ(Results(2), nlohmann::json({"one\ntwo", "three"}));
}

TEST_F(LineEditorTest, PasteIsInsertedUnchangedAndShownSafely) {
  PtyProgram& editor = Start();
  editor.Send("<" + Pasted("a\tb\r\n\x1b]52;c;eA==\x07 \xE2\x80\xAE\\") + ">");
  ExpectScreen(">>> <a  b\n... <1b>]52;c;eA==<07> <202e>\\>\n");
  EXPECT_EQ(editor.terminal().commands(), Lines());
  editor.Send("\r");
  EXPECT_EQ(Results(1), nlohmann::json({"<a\tb\n\x1b]52;c;eA==\x07 \xE2\x80\xAE\\>"}));
}

TEST_F(LineEditorTest, PasteOfAMegabyteArrivesWhole) {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < (1 << 20)) {
    text += static_cast<char>(' ' + random() % 95);
    if (random() % 70 == 0) text += '\n';
  }
  text += "end";
  PtyProgram& editor = Start();
  editor.Send(Pasted(text) + "\r");
  const nlohmann::json results = Results(1);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0] == text);
  EXPECT_LT(editor.terminal().scrollback().size(), 1100u);
}

TEST_F(LineEditorTest, UpAndDownMoveByRowAndThenThroughTheHistory) {
  PtyProgram& editor = Start();
  editor.Send("first\rsecond\nline\r");
  Results(2);
  editor.Send("abc\ndef" + kUp + "1");
  ExpectDraft("abc1\ndef", 4);
  editor.Send(kUp);
  ExpectDraft("second\nline", 11);
  editor.Send(kUp + "2");
  ExpectDraft("seco2nd\nline", 5);
  editor.Send(kUp);
  ExpectDraft("first", 5);
  editor.Send(kDown + kDown + kDown);
  ExpectDraft("abc1\ndef", 8);
}

TEST_F(LineEditorTest, SearchFindsAndBackspaceEditsTheSearch) {
  PtyProgram& editor = Start();
  editor.Send("alpha\rbeta\nsecond\rgamma\r");
  Results(3);
  editor.Send(
      "\x12"
      "be");
  EXPECT_TRUE(
      editor.WaitForScreen(">>> alpha\n>>> beta\n... second\n>>> gamma\n(reverse-i-search)`be': beta\n... second\n"))
      << editor.terminal().Screen();
  editor.Send(
      "\x7f\x7f"
      "alp");
  EXPECT_TRUE(editor.WaitForScreen(">>> alpha\n>>> beta\n... second\n>>> gamma\n(reverse-i-search)`alp': alpha\n"))
      << editor.terminal().Screen();
  editor.Send("\r");
  EXPECT_EQ(Results(4).back(), "alpha");
  editor.Send("xy\x7f");
  ExpectDraft("x", 1);
}

TEST_F(LineEditorTest, ControlGEndsASearch) {
  PtyProgram& editor = Start();
  editor.Send("alpha\r");
  Results(1);
  editor.Send(
      "draft\x12"
      "al\x07");
  ExpectDraft("draft", 5);
}

TEST_F(LineEditorTest, ControlGOpensTheDraftInTheEditor) {
  SetEditor("stat -c %a \"$1\" >" + (directory_ / "mode").string() +
            "\ntr a-z A-Z <\"$1\" >\"$1.new\"\nprintf 'more\\n' >>\"$1.new\"\nmv \"$1.new\" \"$1\"\n" +
            "echo \"$1\" >" + (directory_ / "name").string());
  environment_["TMPDIR"] = directory_.string();
  PtyProgram& editor = Start();
  editor.Send("one\ntwo\x07");
  ExpectDraft("ONE\nTWO\nmore", 12);
  editor.Send("\r");
  EXPECT_EQ(Results(1), nlohmann::json({"ONE\nTWO\nmore"}));
  std::string mode;
  std::ifstream(directory_ / "mode") >> mode;
  EXPECT_EQ(mode, "600");
  std::string name;
  std::ifstream(directory_ / "name") >> name;
  EXPECT_FALSE(fs::exists(name));
}

TEST_F(LineEditorTest, FailedEditorLeavesTheDraft) {
  environment_["EDITOR"] = "false";
  PtyProgram& editor = Start();
  editor.Send("keep me\x07");
  ASSERT_TRUE(editor.WaitFor("ended with status 1")) << editor.output();
  ExpectDraft("keep me", 7);
}

TEST_F(LineEditorTest, TwoEscapesOnAnEmptyDraftSendTheEditCommand) {
  PtyProgram& editor = Start();
  editor.Send("\x1b\x1b");
  ExpectDraft("earlier text", 12);
  editor.Send("\x1b\x1b!");
  ExpectDraft("earlier text!", 13);
  editor.Send("\r" + kUp);
  ExpectDraft("earlier text!", 13);
  EXPECT_EQ(Results(2), nlohmann::json({"/edit", "earlier text!"}));
  editor.Send(kUp + kUp);
  ExpectDraft("earlier text!", 13);
}

TEST_F(LineEditorTest, ControlCMovesTheDraftToTheHistory) {
  PtyProgram& editor = Start();
  editor.Send("two\nlines" + kUp);
  ExpectDraft("two\nlines", 3);
  editor.Send("\x03");
  ExpectScreen(">>> two\n... lines\n[cleared; the Up key brings it back]\n>>>\n");
  editor.Send(kUp);
  ExpectDraft("two\nlines", 9);
}

TEST_F(LineEditorTest, ClearedDraftThatBeginsWithABlankIsNotInTheFile) {
  const std::string history = (directory_ / "history").string();
  PtyProgram& editor = Start(80, 24, {history});
  editor.Send(" private");
  ExpectDraft(" private", 8);
  editor.Send("\x03");
  ExpectScreen(">>>  private\n[cleared; the Up key brings it back]\n>>>\n");
  editor.Send(kUp);
  ExpectDraft(" private", 8);
  EXPECT_EQ(fs::file_size(history), 0u);
}

TEST_F(LineEditorTest, SecondControlCSaysHowToQuitAndTheThirdQuits) {
  PtyProgram& editor = Start();
  editor.Send("draft");
  ExpectDraft("draft", 5);
  editor.Send("\x03");
  ExpectScreen(">>> draft\n[cleared; the Up key brings it back]\n>>>\n");
  editor.Send("\x03");
  ExpectScreen(">>> draft\n[cleared; the Up key brings it back]\n>>>\nCtrl-D or /exit quits.\n>>>\n");
  editor.Send("\x03");
  EXPECT_EQ(editor.WaitForExit(), 130);
  EXPECT_TRUE(editor.TerminalIsRestored());
}

TEST_F(LineEditorTest, SignalThatEndsTheProgramLeavesTheDraftToItsCaller) {
  for (const int number : {SIGTERM, SIGHUP}) {
    fs::remove(results_);
    PtyProgram& editor = Start();
    editor.Send("half\na message");
    ExpectDraft("half\na message", 14);
    kill(editor.pid(), number);
    EXPECT_EQ(editor.WaitForExit(), 128 + number);
    EXPECT_TRUE(editor.TerminalIsRestored());
    EXPECT_FALSE(editor.terminal().state().bracketed_paste);
    EXPECT_EQ(Results(1)[0], nlohmann::json({number, "half\na message"}));
  }
}

TEST_F(LineEditorTest, SignalsAtAnyTimeRestoreTheTerminal) {
  std::mt19937 random(9);
  for (int round = 0; round < 60; ++round) {
    PtyProgram& editor = Start(20 + static_cast<int>(random() % 60), 4 + static_cast<int>(random() % 20));
    std::string keys;
    const int num_keys = static_cast<int>(random() % 40);
    for (int i = 0; i < num_keys; ++i) {
      const Lines choices = {"a",         "\n",        kUp,  kLeft, "\x1b",  "\x12",
                             "\x1b[200~", "\x1b[201~", "\t", "/h",  kFamily, "\r"};
      keys += choices[random() % choices.size()];
    }
    editor.Send(keys);
    const int number = std::vector<int>{SIGTERM, SIGHUP, SIGQUIT, SIGSEGV}[random() % 4];
    kill(editor.pid(), number);
    EXPECT_EQ(editor.WaitForExit(), 128 + number) << nlohmann::json(keys).dump();
    EXPECT_TRUE(editor.TerminalIsRestored());
    TerminalState state = editor.terminal().state();
    EXPECT_EQ(state, TerminalState()) << nlohmann::json(keys).dump();
  }
}

TEST_F(LineEditorTest, SuspendedDraftIsDrawnAgain) {
  PtyProgram& editor = Start();
  editor.Send("one\ntwo" + kUp);
  ExpectDraft("one\ntwo", 3);
  kill(editor.pid(), SIGTSTP);
  ASSERT_TRUE(editor.WaitForStop());
  EXPECT_TRUE(editor.TerminalIsRestored());
  EXPECT_FALSE(editor.terminal().state().bracketed_paste);
  kill(editor.pid(), SIGCONT);
  ExpectScreen(">>> one\n... two\n>>> one\n... two\n");
  editor.Send("!\r");
  EXPECT_EQ(Results(1), nlohmann::json({"one!\ntwo"}));
}

TEST_F(LineEditorTest, ControlLMovesTheDraftToTheTopAndKeepsTheRest) {
  PtyProgram& editor = Start(40, 5);
  editor.Send("before\r");
  Results(1);
  editor.Send("draft\x0c");
  ExpectScreen(">>> draft\n");
  const Lines& scrollback = editor.terminal().scrollback();
  EXPECT_NE(std::find(scrollback.begin(), scrollback.end(), ">>> before"), scrollback.end());
}

TEST_F(LineEditorTest, TabCompletesAndListsChoices) {
  PtyProgram& editor = Start();
  editor.Send("/h\t");
  ExpectScreen("/help   list the commands\n/hello  say hello\n>>> /hel\n");
  editor.Send("p\t.\r");
  EXPECT_EQ(Results(1), nlohmann::json({"/help ."}));
}

TEST_F(LineEditorTest, ChoiceMayContainBlanks) {
  PtyProgram& editor = Start();
  editor.Send("see @a \t");
  ExpectScreen("@a file.txt  @a dir/\n>>> see @a\n");
  editor.Send("d\t.");
  ExpectDraft("see @a dir/.", 12);
  editor.Send("\x15see @b\t.");
  ExpectDraft("see @b.txt .", 12);
}

TEST_F(LineEditorTest, LinesArePrintedAboveTheDraft) {
  const std::string pipe = (directory_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  PtyProgram& editor = Start(80, 24, {"", pipe});
  editor.Send("one\ntwo" + kLeft);
  ExpectDraft("one\ntwo", 6);
  std::ofstream(pipe) << "a batch row is done\n" << std::flush;
  ExpectScreen("1: a batch row is done\n>>> one\n... two\n");
  EXPECT_EQ(editor.terminal().cursor(), (ScreenCursor{2, 6}));
  std::ofstream(pipe) << "another\n" << std::flush;
  ExpectScreen("1: a batch row is done\n2: another\n>>> one\n... two\n");
  editor.Send("x\r");
  EXPECT_EQ(Results(1), nlohmann::json({"one\ntwxo"}));
}

TEST_F(LineEditorTest, WatchesAreServedAndLinesKeptWhileAnEditorIsOpen) {
  const std::string pipe = (directory_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // The script ends when the program has read the text from the pipe.
  SetEditor("echo text >" + pipe + "\nfor i in $(seq 500); do\n  grep -q text " + pipe +
            ".log && echo read && exit\n  sleep 0.02\ndone");
  PtyProgram& editor = Start(80, 24, {"", pipe});
  editor.Send("draft");
  ExpectDraft("draft", 5);
  editor.Send("\x07");
  ExpectScreen("read\n1: text\n>>> draft\n");
}

TEST_F(LineEditorTest, SignalEndsTheProgramAndItsEditor) {
  SetEditor("trap 'echo hung up; exit 1' HUP\necho editing\nwhile :; do sleep 0.02; done");
  PtyProgram& editor = Start();
  editor.Send("draft\x07");
  ASSERT_TRUE(editor.WaitFor("editing")) << editor.output();
  kill(editor.pid(), SIGTERM);
  EXPECT_EQ(editor.WaitForExit(), 128 + SIGTERM);
  EXPECT_NE(editor.output().find("hung up"), std::string::npos) << editor.output();
  EXPECT_TRUE(editor.TerminalIsRestored());
  EXPECT_EQ(Results(1)[0], nlohmann::json({SIGTERM, "draft"}));
}

TEST_F(LineEditorTest, HistoryFileSkipsLinesThatBeginWithABlank) {
  const std::string history = (directory_ / "history").string();
  {
    PtyProgram& editor = Start(80, 24, {history});
    editor.Send("shown\r hidden\r");
    Results(2);
    editor.Send("\x04");
    EXPECT_EQ(editor.WaitForExit(), 0);
  }
  struct stat status {};
  ASSERT_EQ(stat(history.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  PtyProgram& editor = Start(80, 24, {history});
  editor.Send(kUp);
  ExpectDraft("shown", 5);
}

TEST_F(LineEditorTest, DumbTerminalGetsNoEscape) {
  environment_["TERM"] = "dumb";
  PtyProgram& editor = Start();
  editor.Send("one\x7f\ntwo\r/he\t\r");
  EXPECT_EQ(Results(2)[0], "on\ntwo");
  editor.Send("\x04");
  EXPECT_EQ(editor.WaitForExit(), 0);
  EXPECT_EQ(editor.output().find('\x1b'), std::string::npos) << editor.output();
}

TEST_F(LineEditorTest, InputrcIsRespected) {
  const fs::path inputrc = directory_ / "inputrc";
  std::ofstream(inputrc) << "\"\\C-j\": kill-whole-line\n\"\\C-xz\": backward-delete-char\n\"\\C-g\": \"macro\"\n";
  environment_["INPUTRC"] = inputrc.string();
  PtyProgram& editor = Start();
  editor.Send("gone\nabe\xCC\x81\x18z\x07");
  ExpectDraft("abmacro", 7);
}

class LineEditorViTest : public LineEditorTest {
 protected:
  void SetUp() override {
    LineEditorTest::SetUp();
    const fs::path inputrc = directory_ / "inputrc";
    std::ofstream(inputrc) << "set editing-mode vi\n";
    environment_["INPUTRC"] = inputrc.string();
  }
  // Types a text in insert mode, leaves that mode and types the keys. ESC must not arrive together with other keys.
  PtyProgram& Type(const std::string& text, const std::string& keys) {
    PtyProgram& editor = Start();
    editor.Send(text);
    ExpectDraft(text, text.size());
    editor.Send("\x1b");
    const size_t line_feed = text.rfind('\n');
    const size_t line_begin = line_feed == std::string::npos ? 0 : line_feed + 1;
    ExpectDraft(text, line_begin == text.size() ? text.size() : PreviousCluster(text, text.size()));
    editor.Send(keys);
    return editor;
  }
};

TEST_F(LineEditorViTest, KeysMoveByRowAndInsert) {
  PtyProgram& editor = Type("one\ntwo", "kix");
  ExpectDraft("onxe\ntwo", 3);
  editor.Send("\r");
  EXPECT_EQ(Results(1), nlohmann::json({"onxe\ntwo"}));
}

TEST_F(LineEditorViTest, CursorStaysInTheLine) {
  Type("one\ntwo\nthree", "kllllx000D");
  ExpectDraft("one\n\nthree", 4);
}

TEST_F(LineEditorViTest, OperatorsStayInTheLine) {
  PtyProgram& editor = Type("one\ntwo\nthree", "k0lCX");
  ExpectDraft("one\ntX\nthree", 6);
  editor.Send("\x1b");
  ExpectDraft("one\ntX\nthree", 5);
  editor.Send("0d$");
  ExpectDraft("one\n\nthree", 4);
  editor.Send("jd0");
  ExpectDraft("one\n\nthree", 5);
  editor.Send("$d0");
  ExpectDraft("one\n\ne", 5);
}

TEST_F(LineEditorViTest, EscapeAtTheBeginningOfALineStaysThere) {
  Type("one\n", "x");
  ExpectDraft("one\n", 4);
}

TEST_F(LineEditorViTest, InsertAndAppendActOnTheLine) {
  PtyProgram& editor = Type("one\n  two\nthree", "kI<");
  ExpectDraft("one\n<  two\nthree", 5);
  editor.Send("\x1b");
  ExpectDraft("one\n<  two\nthree", 4);
  editor.Send("A>");
  ExpectDraft("one\n<  two>\nthree", 11);
  editor.Send("\x1b");
  ExpectDraft("one\n<  two>\nthree", 10);
  editor.Send("0x^iv");
  ExpectDraft("one\n  vtwo>\nthree", 7);
}

TEST_F(LineEditorViTest, ClustersAreDeletedWhole) {
  Type("a" + kFamily + "e\xCC\x81", "xxiz");
  ExpectDraft("za", 1);
}

TEST_F(LineEditorViTest, KeyAfterARepeatedEscapeIsNotLost) {
  PtyProgram& editor = Type("ab", "");
  editor.Send("\x1b");
  // The program takes the second ESC for a key only after a pause. The screen does not show when it has done so.
  editor.WaitForScreen([](const TerminalEmulator&) { return false; }, std::chrono::milliseconds(200));
  editor.Send("x");
  ExpectDraft("a", 0);
}

TEST_F(LineEditorTest, UnknownKeysInsertNothing) {
  PtyProgram& editor = Start();
  editor.Send("a\x1b[15~b\x1b[Ic\x1b[1;9Rd");
  ExpectDraft("abcd", 4);
}

TEST_F(LineEditorTest, ResizeDrawsAgain) {
  PtyProgram& editor = Start();
  const std::string text = "a line that is longer than twenty columns \xE4\xBD\xA0\xE5\xA5\xBD\nand " + kHebrew;
  editor.Send(text);
  ExpectDraft(text, text.size());
  const std::vector<std::pair<int, int>> sizes = {{5, 20}, {24, 80}, {60, 200}, {2, 10}, {24, 80}};
  std::string now = text;
  for (const auto& [rows, columns] : sizes) {
    editor.Resize(rows, columns);
    ExpectDraft(now, now.size());
    editor.Send("x");
    now += "x";
    ExpectDraft(now, now.size());
  }
  editor.Send("\r");
  EXPECT_EQ(Results(1), nlohmann::json({now}));
}

TEST_F(LineEditorTest, TypedAheadEnterSends) {
  PtyOptions options;
  options.program = LINE_EDITOR_PROGRAM;
  editor_ = std::make_unique<PtyProgram>(Lines{results_.string()}, options);
  editor_->Send("one\rtwo\r");
  EXPECT_EQ(Results(2), nlohmann::json({"one", "two"}));
}

}  // namespace
}  // namespace vllm::app
