// TerminalEmulator: what a terminal shows after a program has written some bytes. A wrapper over libvterm, an
// xterm-like emulator. Owned by a test; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

// A position on the screen; the top left cell is 0, 0.
struct ScreenCursor {
  int row = 0;
  int column = 0;
  bool operator==(const ScreenCursor&) const = default;
};

struct ScreenCell {
  std::string text;  // empty: a blank cell, or the right half of a character of two columns
  int columns = 1;
  bool bold = false;
  bool italic = false;
  bool underline = false;
  bool reverse = false;
  bool strike = false;
  int color = -1;       // foreground: index in the palette, -1: default, -2: 24-bit
  int background = -1;  // the same for the background
};

// States that a program can change and should have changed back.
struct TerminalState {
  bool alternate_screen = false;
  bool mouse = false;
  bool bracketed_paste = false;
  bool cursor_visible = true;
  bool reverse_screen = false;
  std::string title;
  std::string icon_name;
  bool operator==(const TerminalState&) const = default;
};

class TerminalEmulator {
 public:
  TerminalEmulator(int num_rows, int num_columns);
  ~TerminalEmulator();
  TerminalEmulator(const TerminalEmulator&) = delete;
  TerminalEmulator& operator=(const TerminalEmulator&) = delete;

  void Feed(std::string_view bytes);
  // Does not reflow rows: cells outside the new size are lost, or move to the scrollback.
  void Resize(int num_rows, int num_columns);
  int num_rows() const;
  int num_columns() const;

  // Returns the text of a row without trailing blanks.
  std::string Row(int row) const;
  std::vector<std::string> Rows() const;
  // Returns the rows, each with a line feed, without empty rows at the end.
  std::string Screen() const;
  // Returns the rows that have left the screen at the top, oldest first, without trailing blanks.
  const std::vector<std::string>& scrollback() const;
  // Returns the scrollback and then the rows of the screen, without empty rows at the end.
  std::vector<std::string> AllRows() const;
  ScreenCell Cell(int row, int column) const;
  ScreenCursor cursor() const;
  TerminalState state() const;
  int num_bells() const;

  // Returns the commands that the emulator has received and that are not part of drawing text, in the order of arrival:
  // "OSC 52;c;aGk=", "DCS ...", and "CSI >1u" for a control sequence that it does not know. Changes of the palette (OSC
  // 4, 10, 11, 104) and of the clipboard (OSC 52) are among them, hyperlinks (OSC 8) too. The title is in state().
  const std::vector<std::string>& commands() const;
  // Returns and removes the bytes with which the terminal has answered queries, such as the cursor's position.
  std::string TakeReplies();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vllm::app
