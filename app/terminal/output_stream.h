// OutputStream: writes SafeText and StyledText to standard output or to a file, completely and unbuffered. If the
// reader of a pipe has closed it, the program ends quietly (OutputClosed); a full device is an error (ResourceError).
// The Print functions write to standard error and make their text safe. StandardOutput is global; BatchOutput owns the
// stream of its file. Main thread.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "app/terminal/safe_text.h"
#include "app/terminal/styled_text.h"

namespace vllm::app {

// The reader of an output has closed it (EPIPE, or POLLERR from poll).
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
  // Does nothing if `text` is empty. Until all of it is written, RestoreTerminal ends its styles and links.
  void Write(const StyledText& text);
  bool IsTerminal() const { return is_terminal_; }
  int fd() const { return fd_; }

 private:
  void WriteBytes(std::string_view bytes);

  int fd_;
  std::string name_;
  bool is_terminal_;
};

OutputStream& StandardOutput();

// Print one line on standard error, "vllmcli: <text>" or "vllmcli: warning: <text>", and ignore write errors. The text
// may be untrusted; line breaks in it, for example in a file name, are shown as \n.
void PrintError(std::string_view text);
// Also prints the line "hint: <hint>", unless `hint` is empty.
void PrintError(std::string_view text, std::string_view hint);
void PrintWarning(std::string_view text);
// Prints a line without "vllmcli: ", even with --quiet. Used for statistics that the user has requested, and in a chat
// for replies to commands and keys.
void PrintNote(std::string_view text);
// Prints `text`, which may have several lines, on standard error.
void PrintNoteLines(std::string_view text);
// Prints a line that the user has not requested, dim if standard error may have colors.
void PrintDimStatus(std::string_view text);
// Prints a line that the user has not requested, such as a summary. Does nothing after SetQuiet(true).
void PrintStatus(std::string_view text);
// Sets the value of --quiet. If true, PrintStatus, PrintDimStatus and ProgressLine do nothing.
void SetQuiet(bool quiet);
bool IsQuiet();

}  // namespace vllm::app
