// ChildProcess: a program with pipes as its standard streams, for tools and MCP servers. It is
// started without a shell, in its own session and process group, so that it cannot open the terminal and Ctrl-C does
// not reach it. Its environment has only PATH, HOME, LANG, TERM=dumb and TMPDIR, and the variables that its owner adds.
// SIGPIPE must be ignored (InstallSignals), because a program may close its input. Owned by the function or client that
// runs it; main thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

// A tool or a server that could not be started, or that failed. what() is for the user and the model.
class ToolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ChildCommand {
  std::vector<std::string> argv;  // argv[0] is searched in PATH unless it contains a slash
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to the variables above
};

class ChildProcess {
 public:
  // Starts the program. Throws ToolError `cannot start <program>: <why>`. REQUIRES: argv is not empty.
  explicit ChildProcess(const ChildCommand& command);
  // Kills the process group if it has not ended.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Our ends of the pipes, which do not block; -1 after they were closed.
  int input_fd() const { return input_.get(); }
  int output_fd() const { return output_.get(); }
  int error_fd() const { return error_.get(); }
  void CloseInput() { input_ = tokenizer::UniqueFd(); }
  void CloseOutput() { output_ = tokenizer::UniqueFd(); }
  void CloseError() { error_ = tokenizer::UniqueFd(); }

  // Readable once the process has ended; -1 if the kernel has no such descriptors. Then poll HasEnded.
  int end_fd() const { return end_.get(); }
  // Returns true once the process has ended. The other processes of its group are then killed.
  bool HasEnded();
  // Waits up to `limit` for the end of the process. Returns false if it still runs.
  bool WaitForEnd(std::chrono::milliseconds limit);
  // Ends the process group: SIGTERM, then SIGKILL for those that still run after `grace`.
  void Terminate(std::chrono::milliseconds grace);

  // "ended with status 3" or "was ended by signal 9 (Killed)". REQUIRES: HasEnded().
  std::string EndText() const;
  // REQUIRES: HasEnded().
  bool succeeded() const;

 private:
  void Reap();

  pid_t pid_ = -1;  // 0: the process has ended and was reaped
  int status_ = 0;
  tokenizer::UniqueFd input_;
  tokenizer::UniqueFd output_;
  tokenizer::UniqueFd error_;
  tokenizer::UniqueFd end_;
};

// Reads what the pipe has, at most 64 KiB, and appends it to `out`. Returns false if the pipe has ended.
bool ReadAvailable(int fd, std::string& out);
// Writes as much of `bytes` as the pipe takes and removes it from the front. Returns false if the reader closed it.
bool WriteAvailable(int fd, std::string_view& bytes);

}  // namespace vllm::app
