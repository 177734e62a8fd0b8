// Runs the real program as a user does: with its own standard streams, environment and, in PtyProgram, a terminal.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vllm {

struct ProgramResult {
  int status = -1;  // exit status; 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

struct ProgramOptions {
  std::string program;           // another program than the real one
  std::string input;             // sent to standard input, which then ends
  std::string redirect_out;      // file opened as standard output instead of a pipe
  size_t close_out_after = 0;    // bytes after which the reader of standard output goes away; 0: never
  bool close_stdin = false;      // as <&- does
  bool keep_stdin_open = false;  // standard input does not end
  int signal_after_output = 0;   // sent when the first output has come
  std::map<std::string, std::string> environment;
};

// Options with this standard input.
ProgramOptions Input(const std::string& input);

ProgramResult RunProgram(const std::vector<std::string>& arguments, const ProgramOptions& options = {});

// Directory of shared trained models, or empty when it is not there.
std::string RealModel(const std::string& name);
// The model that ships, or empty.
std::string GuideModel();

struct GuideCopy {
  bool keeps_chat_template = true;
  int context =
      1024;  // max_position_embeddings; with a hundred thousand, an answer goes on for as long as a test needs
};
// Makes a model directory in `directory`, which must not exist: the model that ships with these changes. Returns its
// path.
std::string CopyGuideModel(const std::filesystem::path& directory, const GuideCopy& changes);
// The id of the token that the guide has for this character, at the beginning of a word.
std::string GuideTokenId(const std::string& character);

// The program on a pseudo-terminal of 80 x 24, started as a shell does: in a process group of its own, so that it can
// be suspended.
class PtyProgram {
 public:
  // `program` empty: the real one.
  explicit PtyProgram(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& environment = {}, const std::string& program = "");
  ~PtyProgram();
  PtyProgram(const PtyProgram&) = delete;
  PtyProgram& operator=(const PtyProgram&) = delete;

  void Send(const std::string& keys);
  // Reads until what has come since the last successful call holds `text`; false after `limit`.
  bool WaitFor(const std::string& text, std::chrono::milliseconds limit = std::chrono::seconds(120));
  // Waits for the end; the exit status, 128 + signal, or -1 after `limit`.
  int WaitForExit(std::chrono::milliseconds limit = std::chrono::seconds(120));
  // Waits until a signal has stopped the program; false after `limit`.
  bool WaitForStop(std::chrono::milliseconds limit = std::chrono::seconds(120));
  const std::string& output() const { return output_; }
  // Whether the terminal's modes are those before the program started.
  bool TerminalIsRestored() const;
  pid_t pid() const { return pid_; }

 private:
  bool ReadSome(std::chrono::milliseconds limit);

  int master_ = -1;
  int slave_ = -1;    // kept open, so that the modes can be read after the program's end
  pid_t shell_ = -1;  // the process that started the program, and reports on it
  pid_t pid_ = -1;
  int reports_ = -1;  // wait statuses of the program
  int status_ = -1;
  int num_stops_ = 0;
  std::string output_;
  size_t seen_ = 0;
  std::string modes_before_;
};

}  // namespace vllm
