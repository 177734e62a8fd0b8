// OutputStream: the only way to write to standard output and error. Accepts only SafeText, and writes all of it
// unbuffered. Tells apart a reader that has closed the pipe, which ends the program quietly, and a full device, which
// is an error. Main thread.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "app/terminal/safe_text.h"

namespace vllm::app {

// The reader of an output has closed it (EPIPE).
class OutputClosed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class OutputStream {
 public:
  // Borrows `fd`. `name` appears in errors: "standard output", or a file's name.
  OutputStream(int fd, std::string name);

  // Throws OutputClosed, ResourceError `writing <name>: <why>`, or Interrupted if a signal arrives while it waits.
  void Write(const SafeText& text);
  void WriteLine(const SafeText& text);
  bool IsTerminal() const { return is_terminal_; }
  int fd() const { return fd_; }

 private:
  void WriteBytes(std::string_view bytes);

  int fd_;
  std::string name_;
  bool is_terminal_;
};

OutputStream& StandardOutput();

// Prints one line on standard error, "vllmcli: <text>", and ignores write errors. The text may be untrusted: line
// breaks in it, such as in a file's name, are shown as \n.
void PrintError(std::string_view text);
void PrintWarning(std::string_view text);
// Prints a line without "vllmcli: ". For output that the user has requested: statistics, replies to chat commands.
void PrintNote(std::string_view text);
// Prints a text of any number of lines on standard error.
void PrintNoteLines(std::string_view text);
// Prints a line that the user has not requested, such as a summary. Does nothing after SetQuiet(true).
void PrintStatus(std::string_view text);
// Sets --quiet, which disables ProgressLine too.
void SetQuiet(bool quiet);
bool IsQuiet();

}  // namespace vllm::app
