#include "app/pickers/list_picker.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

std::vector<PickerRow> Rows(int count) {
  std::vector<PickerRow> rows;
  for (int i = 1; i <= count; ++i) {
    rows.push_back({.id = i, .branch = "", .text = "row " + std::to_string(i), .detail = "", .is_current = i == 2});
  }
  return rows;
}

// A picker on a screen of 6 rows, 4 of them for the list.
class ListPickerTest : public testing::Test {
 protected:
  explicit ListPickerTest(int count = 10) : picker_("Title", Rows(count), 2, true) { Draw(); }
  std::string Draw(int rows = 6, int columns = 40) { return picker_.Draw(rows, columns).Text(); }
  PickerEvent Press(KeyCode code) { return Handle({code}); }
  PickerEvent Type(const std::u32string& text) {
    PickerEvent event = PickerEvent::kNone;
    for (const char32_t c : text) event = Handle({KeyCode::kCharacter, c});
    return event;
  }
  PickerEvent Handle(const Key& key) {
    const PickerEvent event = picker_.HandleKey(key);
    Draw();
    return event;
  }

  ListPicker picker_;
};

TEST_F(ListPickerTest, CurrentRowIsMarkedAndSelected) {
  EXPECT_EQ(picker_.selected(), 2);
  EXPECT_EQ(Draw(),
            "Title                            2 of 10\n"
            "  row 1\n"
            "* row 2\n"
            "  row 3\n"
            "  row 4\n"
            "Enter: open   /: filter   d: delete   q\n");
  EXPECT_TRUE(picker_.Draw(6, 40).At(2, 39).style.reverse);
  EXPECT_FALSE(picker_.Draw(6, 40).At(1, 0).style.reverse);
}

TEST_F(ListPickerTest, KeysMoveWithinTheList) {
  Press(KeyCode::kDown);
  EXPECT_EQ(picker_.selected(), 3);
  Type(U"j");
  EXPECT_EQ(picker_.selected(), 4);
  Type(U"kk");
  Press(KeyCode::kUp);
  Press(KeyCode::kUp);
  EXPECT_EQ(picker_.selected(), 1);
  Press(KeyCode::kPageDown);
  EXPECT_EQ(picker_.selected(), 4);
  Press(KeyCode::kPageDown);
  Press(KeyCode::kPageDown);
  Press(KeyCode::kPageDown);
  EXPECT_EQ(picker_.selected(), 10);
  EXPECT_NE(Draw().find("  row 7\n"), std::string::npos);
  EXPECT_EQ(Draw().find("  row 6\n"), std::string::npos);
  Press(KeyCode::kPageUp);
  EXPECT_EQ(picker_.selected(), 7);
  Press(KeyCode::kHome);
  EXPECT_EQ(picker_.selected(), 1);
  Type(U"G");
  EXPECT_EQ(picker_.selected(), 10);
  Type(U"g");
  EXPECT_EQ(picker_.selected(), 1);
  EXPECT_EQ(Press(KeyCode::kEnter), PickerEvent::kChosen);
}

TEST_F(ListPickerTest, FilterShowsMatchingRows) {
  Type(U"/ROW 1");
  EXPECT_EQ(Draw(),
            "Title                             1 of 2\n"
            "  row 1\n"
            "  row 10\n"
            "\n"
            "\n"
            "/ROW 1_\n");
  Type(U"0q");  // letters are part of the filter
  EXPECT_EQ(picker_.selected(), 0);
  EXPECT_NE(Draw().find("(nothing matches)"), std::string::npos);
  EXPECT_EQ(Press(KeyCode::kEnter), PickerEvent::kNone);  // ends the typing
  EXPECT_EQ(Press(KeyCode::kEnter), PickerEvent::kNone);  // there is nothing to choose
  Type(U"/");
  Press(KeyCode::kBackspace);
  EXPECT_EQ(picker_.selected(), 10);
  Press(KeyCode::kEnter);
  EXPECT_EQ(Press(KeyCode::kEscape), PickerEvent::kNone);  // removes the filter
  EXPECT_EQ(picker_.selected(), 10);
  EXPECT_EQ(Press(KeyCode::kEscape), PickerEvent::kLeft);
}

TEST_F(ListPickerTest, FilterOfSeveralBytesIsEditedByCharacter) {
  Type(U"/é你");
  EXPECT_NE(Draw().find("/é你_"), std::string::npos);
  Press(KeyCode::kBackspace);
  EXPECT_NE(Draw().find("/é_"), std::string::npos);
  Press(KeyCode::kBackspace);
  Press(KeyCode::kBackspace);
  EXPECT_EQ(picker_.selected(), 10 - 8);
}

TEST_F(ListPickerTest, DeleteIsConfirmed) {
  Type(U"d");
  EXPECT_NE(Draw().find("Delete row 2? y: yes"), std::string::npos);
  EXPECT_EQ(Type(U"n"), PickerEvent::kNone);
  EXPECT_EQ(Draw().find("Delete"), std::string::npos);
  EXPECT_EQ(Press(KeyCode::kDelete), PickerEvent::kNone);
  EXPECT_EQ(Press(KeyCode::kEnter), PickerEvent::kNone);
  Type(U"d");
  EXPECT_EQ(Type(U"y"), PickerEvent::kDelete);
  picker_.Remove(2);
  EXPECT_EQ(picker_.selected(), 3);
  picker_.SetMessage("message");
  EXPECT_NE(Draw().find("message"), std::string::npos);
  Type(U"j");
  EXPECT_EQ(Draw().find("message"), std::string::npos);
}

TEST_F(ListPickerTest, EverySizeOfTheScreenIsDrawn) {
  for (int rows = 1; rows < 8; ++rows) {
    for (int columns = 1; columns < 70; columns += 4) {
      const CellGrid grid = picker_.Draw(rows, columns);
      EXPECT_EQ(grid.rows(), rows);
      EXPECT_NE(grid.Text(), "");
    }
  }
}

TEST_F(ListPickerTest, LeavingKeysLeave) {
  EXPECT_EQ(Type(U"q"), PickerEvent::kLeft);
  EXPECT_EQ(Press(KeyCode::kInterrupt), PickerEvent::kLeft);
  Type(U"/x");
  EXPECT_EQ(Press(KeyCode::kInterrupt), PickerEvent::kLeft);
}

TEST(ListPickerDrawTest, HostileTextCannotLeaveItsRow) {
  ListPicker picker("t", {{.id = 1, .branch = "", .text = "a\x1b[2J\n\u202Eb", .detail = "d"}}, 1, false);
  EXPECT_EQ(picker.Draw(3, 60).Text().find('\x1b'), std::string::npos);
  EXPECT_EQ(picker.Draw(3, 60).At(1, 2).text, "a");
}

TEST(ListPickerDrawTest, EmptyListIsDrawn) {
  ListPicker picker("t", {}, 0, true);
  EXPECT_EQ(picker.Draw(4, 30).Text(),
            "t                       0 of 0\n  (nothing matches)\n\nEnter: open   /: filter   d:\n");
  EXPECT_EQ(picker.HandleKey({KeyCode::kDown}), PickerEvent::kNone);
  EXPECT_EQ(picker.HandleKey({KeyCode::kCharacter, 'd'}), PickerEvent::kNone);
  EXPECT_EQ(picker.selected(), 0);
}

}  // namespace
}  // namespace vllm::app
