// OutputStream: the one way to standard output and error. Takes SafeText only, writes it whole and at once, and tells
// a reader that went away (ends the program quietly) from a device that is full (an error). Main thread.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "app/terminal/safe_text.h"

namespace vllm {

// The reader of an output is gone (EPIPE).
class OutputClosed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class OutputStream {
 public:
  // `fd` is borrowed; `name` is for errors: "standard output", a file's name.
  OutputStream(int fd, std::string name);

  // Throws OutputClosed, ResourceError `writing <name>: <why>`, or Interrupted when a signal comes while it waits.
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

// One line on standard error, "vllmcli: <text>"; a failure to write it is ignored. The text may come from outside: line
// breaks in it, as in the name of a file, are shown as \n.
void PrintError(std::string_view text);
void PrintWarning(std::string_view text);
// The same without "vllmcli: ", for what the user asked for: statistics, replies to chat commands.
void PrintNote(std::string_view text);
// Text of any number of lines on standard error.
void PrintNoteLines(std::string_view text);
// A line that nobody asked for, such as a summary; dropped after SetQuiet(true).
void PrintStatus(std::string_view text);
// --quiet. ProgressLine obeys it too.
void SetQuiet(bool quiet);
bool IsQuiet();

}  // namespace vllm
