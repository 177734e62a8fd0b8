// Tests of LineEditor on terminals of several sizes, with tall drafts and random keys.
#include <random>

#include "tests/editor/line_editor_test.h"

namespace vllm::app {
namespace {

class LineEditorSizeTest : public LineEditorTest, public testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(LineEditorSizeTest, DraftOfThreeHundredLinesCanBeEditedAnywhere) {
  const auto [columns, rows] = GetParam();
  PtyProgram& editor = Start(columns, rows);
  std::string text;
  for (int i = 0; i < 300; ++i) text += (i > 0 ? "\n" : "") + std::string("line ") + std::to_string(i);
  editor.Send(text);
  ExpectDraft(text, text.size());
  std::string ups;
  for (int i = 0; i < 150; ++i) ups += kUp;
  editor.Send(ups + "x");
  text.insert(text.find("line 149") + 8, "x");
  ExpectDraft(text, text.find("line 149x") + 9);
  editor.Send(ups + "y");
  text.insert(6, "y");
  ExpectDraft(text, 7);
  editor.Send("\r");
  EXPECT_EQ(Results(1), nlohmann::json({text}));
  // The scrollback contains each row of the draft once.
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
          // Another key follows, because a second such key would return to the first one's column.
          keys += (direction < 0 ? kUp : kDown) + kLeft;
          model.cursor = *position;
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
    // The prompt after a message must differ from that before it.
    keys += "x";
    model.Insert("x");
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
