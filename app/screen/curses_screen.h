// CursesScreen: shows CellGrids in the terminal's alternate screen and reads keys. The terminal is restored when the
// object is destroyed, when the program is stopped (Ctrl-Z), and when a signal or a crash ends it. Only one may exist
// at a time. While it exists, nothing else may write to the terminal. Owned by the command that shows the view; main
// thread.
//
//   CursesScreen screen;
//   while (true) {
//     screen.Show(Draw(screen.rows(), screen.columns()));
//     const Key key = screen.WaitKey(std::chrono::milliseconds(250));
//     if (key.Is('q')) break;
//   }
#pragma once

#include <chrono>
#include <memory>

#include "app/screen/cell_grid.h"
#include "app/screen/key.h"

namespace vllm::app {

// Returns true if CursesScreen can be used: standard output or standard error is a terminal that can address its
// cursor, and keys can be read from standard input or /dev/tty. NO_COLOR only disables the colors.
bool CanUseScreen();

class CursesScreen {
 public:
  // Enters the alternate screen. Uses standard output, or standard error if that is no terminal. Reads keys from
  // standard input, or from /dev/tty if that is no terminal. Throws ResourceError `opening the screen: <why>`.
  // REQUIRES: EnterMainLoop() has been called, so that signals are recorded.
  CursesScreen();
  // Leaves the alternate screen.
  ~CursesScreen();
  CursesScreen(const CursesScreen&) = delete;
  CursesScreen& operator=(const CursesScreen&) = delete;

  // The current size of the terminal. At least 1 each.
  int rows() const;
  int columns() const;
  // Returns true if the user's locale uses UTF-8, so that a view may draw with characters that are not ASCII.
  bool uses_utf8() const;

  // Draws the grid; cells that have not changed are not sent. Cells outside the screen are ignored.
  void Show(const CellGrid& grid);

  // Waits for a key or an event, at most `timeout`. Returns kNone as soon as `fd` is readable, unless it is -1.
  // Ctrl-C is a key. Ctrl-Z restores the terminal, stops the program and returns kRedraw after it is continued. Throws
  // Interrupted on SIGTERM and SIGHUP.
  Key WaitKey(std::chrono::milliseconds timeout, int fd = -1);
  // Returns the descriptor to poll for keys in a loop that then calls WaitKey with a timeout of 0.
  int KeyFd() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vllm::app
