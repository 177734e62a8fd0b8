// RunProgram and PtyProgram run the real program as a user does, in a process with its own environment. RunProgram
// connects the program's standard streams to pipes, PtyProgram to a terminal. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/terminal_emulator.h"

namespace vllm::app {

struct ProgramResult {
  int status = -1;  // exit status, or 128 + signal number if a signal ended the program
  std::string out;
  std::string err;
};

struct ProgramOptions {
  std::string program;           // run this program instead of vllmcli
  std::string input;             // sent to standard input, which is then closed unless keep_stdin_open is set
  std::string redirect_out;      // file to open as standard output instead of a pipe
  size_t close_out_after = 0;    // close the pipe of standard output after at least this many bytes; 0: never
  bool close_stdin = false;      // start the program without standard input, like <&- in a shell
  bool keep_stdin_open = false;  // do not close standard input after `input`
  int signal_after_output = 0;   // signal to send once the program has written to standard output; 0: none
  std::map<std::string, std::string> environment;
};

// Replaces the calling process, a child of the test, by the program. The environment is built from scratch, so that the
// developer's settings do not affect a test. Only the sanitizers' options are inherited.
[[noreturn]] void ExecProgram(std::string binary, const std::vector<std::string>& arguments,
                              const std::map<std::string, std::string>& environment);
// Returns the exit status in a status of waitpid, or 128 + signal number if a signal ended the program.
int ExitStatusOf(int wait_status);

// Returns options with this standard input.
ProgramOptions Input(const std::string& input);

// Milliseconds without input or output after which a program counts as hanging. Sanitizers make it ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSilenceLimitMs = 600'000;
#else
constexpr int kSilenceLimitMs = 60'000;
#endif
// How long a PtyProgram is waited for.
constexpr std::chrono::milliseconds kWaitLimit(2 * kSilenceLimitMs);

// Runs the program until it ends. Kills it if kSilenceLimitMs pass without input or output.
ProgramResult RunProgram(const std::vector<std::string>& arguments, const ProgramOptions& options = {});

// Returns the directory of the shared trained model `name`, or an empty string if it does not exist.
std::string RealModel(const std::string& name);
// Returns the directory of the bundled model, or an empty string if it does not exist.
std::string GuideModel();

// How CopyGuideModel changes the bundled model.
struct GuideCopy {
  bool keeps_chat_template = true;
  // max_position_embeddings and the tokenizer's model_max_length. With 100,000, an answer continues for as long as a
  // test needs.
  int context = 1024;
  std::string architecture = "LlamaForCausalLM";
};
// Creates `directory` with a copy of the bundled model, applies `changes`, and returns the path.
// REQUIRES: `directory` does not exist.
std::string CopyGuideModel(const std::filesystem::path& directory, const GuideCopy& changes);
// Returns the bundled model's token id for this character at the beginning of a word, or an empty string if the
// character is not one token.
std::string GuideTokenId(const std::string& character);

// Returns the records in the output file of a batch by custom_id, which must be unique. The batch may still be running:
// an incomplete last line is left out.
std::map<std::string, nlohmann::json> ReadBatchRecords(const std::string& path);

struct PtyOptions {
  std::map<std::string, std::string> environment;
  std::string program;  // run this program instead of vllmcli
  int num_rows = 24;
  int num_columns = 80;
};

// The program on a pseudo-terminal with an emulator. It runs in its own process group, as if a shell had started it, so
// that it can be suspended.
class PtyProgram {
 public:
  PtyProgram(const std::vector<std::string>& arguments, const PtyOptions& options);
  // On a terminal of 80 x 24. An empty `program` means vllmcli.
  explicit PtyProgram(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& environment = {}, const std::string& program = "")
      : PtyProgram(arguments, PtyOptions{environment, program}) {}
  ~PtyProgram();
  PtyProgram(const PtyProgram&) = delete;
  PtyProgram& operator=(const PtyProgram&) = delete;

  // Sends keys of any length and reads the output meanwhile. Enter is "\r".
  void Send(const std::string& keys);
  // Reads until the output after the previous match contains `text`. Returns false if it does not within `limit`.
  bool WaitFor(const std::string& text, std::chrono::milliseconds limit = kWaitLimit);
  // Reads until `is_shown` returns true for the screen. Returns false if it does not within `limit`.
  bool WaitForScreen(const std::function<bool(const TerminalEmulator&)>& is_shown,
                     std::chrono::milliseconds limit = kWaitLimit);
  // Waits until TerminalEmulator::Screen() is `screen`.
  bool WaitForScreen(const std::string& screen, std::chrono::milliseconds limit = kWaitLimit);
  // Changes the size of the terminal, which sends SIGWINCH to the program.
  void Resize(int num_rows, int num_columns);
  // Waits until the program ends. Returns its exit status, 128 + signal number if a signal ended it, or -1 if it has
  // not ended within `limit`.
  int WaitForExit(std::chrono::milliseconds limit = kWaitLimit);
  // Waits until a signal has stopped the program. Returns false if the program ends first or `limit` expires.
  bool WaitForStop(std::chrono::milliseconds limit = kWaitLimit);
  // Closes the terminal's other side, as if the terminal emulator had been killed. Its modes can no longer be read.
  void CloseTerminal();
  const std::string& output() const { return output_; }
  // Returns what the terminal shows after the output that has been read.
  const TerminalEmulator& terminal() const { return terminal_; }
  // Returns true if the terminal's modes are the same as before the program started.
  bool TerminalIsRestored() const;
  pid_t pid() const { return pid_; }

 private:
  bool ReadSome(std::chrono::milliseconds limit);

  int master_ = -1;
  int slave_ = -1;    // kept open so that the modes can be read after the program has ended
  pid_t shell_ = -1;  // the process that started the program and reports its wait statuses
  pid_t pid_ = -1;
  int reports_ = -1;  // pipe with the program's process id and wait statuses
  int status_ = -1;
  int num_stops_ = 0;
  std::string output_;
  TerminalEmulator terminal_;
  size_t seen_ = 0;
  std::string modes_before_;
};

}  // namespace vllm::app
