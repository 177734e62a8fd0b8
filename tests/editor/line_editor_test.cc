// Types into LineEditor on a pseudo-terminal and compares what the terminal shows.
#include "app/editor/line_editor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "app/editor/draft_layout.h"
#include "app/terminal/text_width.h"
#include "tests/program/program.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

const std::string kUp = "\x1b[A";
const std::string kDown = "\x1b[B";
const std::string kRight = "\x1b[C";
const std::string kLeft = "\x1b[D";
const std::string kFamily =
    "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7\xE2\x80\x8D\xF0\x9F\x91\xA6";
const std::string kHebrew = "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D";

std::string Pasted(const std::string& text) { return "\x1b[200~" + text + "\x1b[201~"; }

class LineEditorTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_editor_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    results_ = directory_ / "results";
  }
  void TearDown() override {
    editor_.reset();
    fs::remove_all(directory_);
  }

  // Starts the program and waits for the prompt.
  PtyProgram& Start(int num_columns = 80, int num_rows = 24, const Lines& more_arguments = {}) {
    PtyOptions options;
    options.program = LINE_EDITOR_PROGRAM;
    options.environment = environment_;
    options.num_rows = num_rows;
    options.num_columns = num_columns;
    Lines arguments = {results_.string()};
    arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
    editor_ = std::make_unique<PtyProgram>(arguments, options);
    EXPECT_TRUE(editor_->WaitFor(">>> ")) << editor_->output();
    return *editor_;
  }
  // Returns the messages that were sent, after waiting for `count` of them.
  nlohmann::json Results(size_t count) {
    nlohmann::json results = nlohmann::json::array();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      // Reads what the program writes, so that it does not wait.
      editor_->WaitForScreen([](const TerminalEmulator&) { return false; }, std::chrono::milliseconds(1));
      results = nlohmann::json::array();
      std::ifstream file(results_);
      for (std::string line; std::getline(file, line) && !file.eof();) results.push_back(nlohmann::json::parse(line));
      if (results.size() >= count) break;
    }
    return results;
  }
  void ExpectScreen(const std::string& screen) {
    EXPECT_TRUE(editor_->WaitForScreen(screen, std::chrono::seconds(10))) << editor_->terminal().Screen();
  }
  // Waits until the terminal shows the layout of a draft around its cursor.
  void ExpectDraft(const std::string& text, size_t cursor) {
    const auto shows = [&](const TerminalEmulator& terminal) {
      const DraftLayout layout =
          LayOutDraft({text, cursor, ">>> ", "... "}, terminal.num_columns(), terminal.num_rows() - 1);
      const int top = terminal.cursor().row - layout.cursor_row;
      for (size_t i = 0; i < layout.rows.size(); ++i) {
        // The rows that are visible depend on where the cursor was, if not all are.
        if (layout.num_rows > layout.rows.size() && static_cast<int>(i) != layout.cursor_row) continue;
        if (top + static_cast<int>(i) < 0 || top + static_cast<int>(i) >= terminal.num_rows()) return false;
        std::string row(layout.rows[i].text.view());
        row.erase(row.find_last_not_of(' ') + 1);
        if (terminal.Row(top + static_cast<int>(i)) != row) return false;
      }
      return !HasSimpleWidth(layout.before_cursor.view()) || terminal.cursor().column == layout.cursor_column;
    };
    EXPECT_TRUE(editor_->WaitForScreen(shows, std::chrono::seconds(10)))
        << text << "\n"
        << editor_->terminal().Screen() << editor_->terminal().cursor().row << ", "
        << editor_->terminal().cursor().column;
  }
  // Terminals agree about the width of one code point with combining marks.
  static bool HasSimpleWidth(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      const TextCluster cluster = ClusterAt(text, i);
      if (cluster.num_bytes > 4) return false;
      i += cluster.num_bytes;
    }
    return true;
  }

  fs::path directory_;
  fs::path results_;
  std::map<std::string, std::string> environment_;
  std::unique_ptr<PtyProgram> editor_;
};

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
  const fs::path script = directory_ / "my editor";
  std::ofstream(script) << "#!/bin/sh\nstat -c %a \"$1\" >" << (directory_ / "mode").string()
                        << "\ntr a-z A-Z <\"$1\" >\"$1.new\"\nprintf 'more\\n' >>\"$1.new\"\nmv \"$1.new\" \"$1\"\n"
                        << "echo \"$1\" >" << (directory_ / "name").string() << "\n";
  fs::permissions(script, fs::perms::owner_all);
  environment_["EDITOR"] = "'" + script.string() + "'";
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
  editor.Send("see @a f\t");
  ExpectScreen("@a file.txt  @a dir/\n>>> see @a f\n");
  editor.Send(
      "\x7f"
      "d\t.");
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
  ExpectScreen("a batch row is done\n>>> one\n... two\n");
  EXPECT_EQ(editor.terminal().cursor(), (ScreenCursor{2, 6}));
  editor.Send("x\r");
  EXPECT_EQ(Results(1), nlohmann::json({"one\ntwxo"}));
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

TEST_F(LineEditorTest, ViModeWorks) {
  const fs::path inputrc = directory_ / "inputrc";
  std::ofstream(inputrc) << "set editing-mode vi\n";
  environment_["INPUTRC"] = inputrc.string();
  PtyProgram& editor = Start();
  editor.Send("one\ntwo");
  ExpectDraft("one\ntwo", 7);
  editor.Send("\x1b");
  ExpectDraft("one\ntwo", 6);
  editor.Send("kix");
  ExpectDraft("onxe\ntwo", 3);
  editor.Send("\r");
  EXPECT_EQ(Results(1), nlohmann::json({"onxe\ntwo"}));
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

class LineEditorSizeTest : public LineEditorTest, public testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(LineEditorSizeTest, DraftOfThreeHundredLinesCanBeEditedAnywhere) {
  const auto [columns, rows] = GetParam();
  PtyProgram& editor = Start(columns, rows);
  std::string text;
  for (int i = 0; i < 300; ++i) text += (i > 0 ? "\n" : "") + std::string("line ") + std::to_string(i);
  std::string keys = text;
  editor.Send(keys);
  ExpectDraft(text, text.size());
  std::string ups;
  for (int i = 0; i < 150; ++i) ups += kUp;
  editor.Send(ups + "x");
  text.insert(text.find("line 149") + 8, "x");
  ExpectDraft(text, text.find("line 149x") + 9);
  editor.Send(ups + "y");
  text.insert(6, "y");
  ExpectDraft(text, 7);
  // What was above the draft is not touched.
  editor.Send("\r");
  EXPECT_EQ(Results(1), nlohmann::json({text}));
  // The whole draft is in the scrollback, each row once.
  ASSERT_TRUE(
      editor.WaitForScreen([](const TerminalEmulator& terminal) { return terminal.AllRows().back() == ">>>"; }));
  Lines expected;
  for (const DraftRow& row : LayOutDraft({text, 0, ">>> ", "... "}, columns, 1000).rows) {
    expected.emplace_back(row.text.view());
  }
  expected.emplace_back(">>>");
  const Lines shown = editor.terminal().AllRows();
  ASSERT_GE(shown.size(), expected.size());
  EXPECT_EQ(Lines(shown.end() - static_cast<std::ptrdiff_t>(expected.size()), shown.end()), expected);
}

TEST_P(LineEditorSizeTest, ClustersAreMovedOverAndDeletedWhole) {
  const auto [columns, rows] = GetParam();
  PtyProgram& editor = Start(columns, rows);
  const Lines clusters = {kFamily, "e\xCC\x81", "\xE4\xBD\xA0", "\xD7\xA9\xD6\xB8", "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA"};
  std::string text;
  for (const std::string& cluster : clusters) text += cluster;
  editor.Send(text);
  ExpectDraft(text, text.size());
  for (const std::string& cluster : {clusters[4], clusters[3], clusters[2], clusters[1]}) {
    editor.Send("\x7f");
    text.resize(text.size() - cluster.size());
    ExpectDraft(text, text.size());
  }
  editor.Send(kLeft + "<" + kRight + ">");
  text = "<" + kFamily + ">";
  ExpectDraft(text, text.size());
  editor.Send("\x01" + kRight + "\x1b[3~\r");
  EXPECT_EQ(Results(1), nlohmann::json({"<>"}));
}

// A model of the buffer. Positions are bytes.
struct Model {
  std::string text;
  size_t cursor = 0;

  void Insert(const std::string& piece) {
    text.insert(cursor, piece);
    cursor += piece.size();
  }
  size_t Left() const { return cursor == 0 ? 0 : PreviousCluster(text, cursor); }
  size_t Right() const { return cursor == text.size() ? cursor : cursor + ClusterAt(text, cursor).num_bytes; }
  size_t LineBegin() const { return cursor == 0 ? 0 : text.rfind('\n', cursor - 1) + 1; }
  size_t LineEnd() const { return std::min(text.find('\n', cursor), text.size()); }
  void Erase(size_t begin, size_t end) {
    text.erase(begin, end - begin);
    cursor = begin;
  }
};

TEST_P(LineEditorSizeTest, RandomKeysDoWhatASimpleModelSays) {
  const auto [columns, rows] = GetParam();
  PtyProgram& editor = Start(columns, rows);
  const Lines pieces = {"a",        "b c",   "\xE4\xBD\xA0",    "e\xCC\x81", kHebrew, kFamily, "long words here ",
                        "\xC3\xA9", "12345", "\xF0\x9F\x98\x80"};
  std::mt19937 random(static_cast<unsigned>(columns));
  nlohmann::json expected = nlohmann::json::array();
  constexpr int kNumSequences = 340;  // about 1,000 with the three sizes
  for (int sequence = 0; sequence < kNumSequences; ++sequence) {
    Model model;
    std::string keys;
    const int num_keys = 5 + static_cast<int>(random() % 60);
    for (int i = 0; i < num_keys; ++i) {
      const size_t before = model.cursor;
      switch (random() % 16) {
        case 0:
          keys += kLeft;
          model.cursor = model.Left();
          break;
        case 1:
          keys += kRight;
          model.cursor = model.Right();
          break;
        case 2:
          keys += "\x7f";
          model.Erase(model.Left(), before);
          break;
        case 3:
          keys += "\x1b[3~";
          model.Erase(before, model.Right());
          break;
        case 4:
          keys += "\x01";
          model.cursor = before == model.LineBegin() ? 0 : model.LineBegin();
          break;
        case 5:
          keys += "\x05";
          model.cursor = before == model.LineEnd() ? model.text.size() : model.LineEnd();
          break;
        case 6:
          keys += "\x1b\r";
          model.Insert("\n");
          break;
        case 7:
          keys += "\n";
          model.Insert("\n");
          break;
        case 8: {
          const size_t end = model.LineEnd() == before && before < model.text.size() ? before + 1 : model.LineEnd();
          keys += "\x0b";
          model.Erase(before, end);
          break;
        }
        case 9: {
          const size_t begin = model.LineBegin() == before && before > 0 ? before - 1 : model.LineBegin();
          keys += "\x15";
          model.Erase(begin, before);
          break;
        }
        case 10: {
          // Beyond the first and last row, the history follows.
          const int direction = random() % 2 == 0 ? -1 : 1;
          const Draft draft = {model.text, before, ">>> ", "... "};
          const int column = LayOutDraft(draft, columns, 1).cursor_column;
          const std::optional<size_t> position = MoveByRow(draft, columns, direction, column);
          if (!position) break;
          // A key between two such keys makes each of them begin at its own column.
          keys += "\x05\x1b[D";
          model.cursor = before == model.LineEnd() ? model.text.size() : model.LineEnd();
          model.cursor = model.Left();
          break;
        }
        case 11:
          keys += Pasted("p\nq");
          model.Insert("p\nq");
          break;
        default: {
          const std::string& piece = pieces[random() % pieces.size()];
          keys += piece;
          model.Insert(piece);
        }
      }
    }
    editor.Send(keys);
    ExpectDraft(model.text, model.cursor);
    if (HasFailure()) FAIL() << nlohmann::json(keys).dump();
    editor.Send("\r");
    expected.push_back(model.text);
    ASSERT_TRUE(editor.WaitForScreen([&](const TerminalEmulator& terminal) {
      return terminal.Row(terminal.cursor().row) == ">>>" && terminal.cursor().column == 4;
    })) << editor.terminal().Screen();
  }
  EXPECT_EQ(Results(expected.size()), expected);
  TerminalState state;
  state.bracketed_paste = true;
  EXPECT_EQ(editor.terminal().state(), state);
}

INSTANTIATE_TEST_SUITE_P(Sizes, LineEditorSizeTest,
                         testing::Values(std::pair(80, 24), std::pair(20, 5), std::pair(200, 60)));

}  // namespace
}  // namespace vllm::app
