#include "tests/program/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace vllm::app {
namespace {

using Clock = std::chrono::steady_clock;

std::string ModesOf(int fd) {
  termios modes{};
  tcgetattr(fd, &modes);
  std::string text = std::to_string(modes.c_iflag) + " " + std::to_string(modes.c_oflag) + " " +
                     std::to_string(modes.c_cflag) + " " + std::to_string(modes.c_lflag);
  text.append(reinterpret_cast<const char*>(modes.c_cc), sizeof(modes.c_cc));
  return text;
}

winsize SizeOf(const TerminalEmulator& terminal) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(terminal.num_rows());
  size.ws_col = static_cast<unsigned short>(terminal.num_columns());
  return size;
}

// Runs in the child that acts as the shell. Starts the program in its own foreground process group, then writes the
// program's process id and each of its wait statuses to `reports`.
[[noreturn]] void RunShell(int terminal, int reports, const std::string& binary,
                           const std::vector<std::string>& arguments,
                           const std::map<std::string, std::string>& environment) {
  setsid();
  ioctl(terminal, TIOCSCTTY, 0);
  signal(SIGTTOU, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  const pid_t program = fork();
  if (program == 0) {
    setpgid(0, 0);
    tcsetpgrp(terminal, getpid());
    signal(SIGTTOU, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    for (int fd = 0; fd < 3; ++fd) dup2(terminal, fd);
    if (terminal > 2) close(terminal);
    ExecProgram(binary.empty() ? VLLMCLI_BINARY : binary, arguments, environment);
  }
  int report = program;
  do {
    if (write(reports, &report, sizeof(report)) != static_cast<ssize_t>(sizeof(report))) break;
    if (report != program && (WIFEXITED(report) || WIFSIGNALED(report))) break;
  } while (waitpid(program, &report, WUNTRACED) == program);
  kill(program, SIGKILL);
  _exit(0);
}

}  // namespace

void ExecProgram(std::string binary, const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> variables = {
      {"PATH", "/usr/bin:/bin"}, {"HOME", "/dev/null"}, {"TERM", "xterm"}, {"LANG", "C.UTF-8"}, {"TZ", "UTC"}};
  for (const auto& [name, value] : environment) variables[name] = value;
  for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) variables[name] = value;
  }
  std::vector<std::string> texts;
  for (const auto& [name, value] : variables) texts.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& text : texts) envp.push_back(text.data());
  envp.push_back(nullptr);
  std::vector<std::string> words = arguments;
  std::vector<char*> argv = {binary.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execve(binary.c_str(), argv.data(), envp.data());
  _exit(127);
}

int ExitStatusOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string RealModel(const std::string& name) {
  const std::string path = std::string(VLLMCLI_REALDATA) + "/models/" + name;
  return std::filesystem::exists(path) ? path : "";
}

std::string GuideModel() {
  const std::string path = std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model";
  return std::filesystem::exists(path + "/config.json") ? path : "";
}

std::string CopyGuideModel(const std::filesystem::path& directory, const GuideCopy& changes) {
  const std::filesystem::path guide = GuideModel();
  std::filesystem::create_directories(directory);
  for (const char* name : {"tokenizer.json", "model.safetensors", "generation_config.json"}) {
    std::filesystem::create_symlink(guide / name, directory / name);
  }
  nlohmann::json config = nlohmann::json::parse(std::ifstream(guide / "config.json"));
  config["max_position_embeddings"] = changes.context;
  config["architectures"] = {changes.architecture};
  std::ofstream(directory / "config.json") << config.dump();
  nlohmann::json tokenizer = nlohmann::json::parse(std::ifstream(guide / "tokenizer_config.json"));
  tokenizer["model_max_length"] = changes.context;
  if (!changes.keeps_chat_template) tokenizer.erase("chat_template");
  std::ofstream(directory / "tokenizer_config.json") << tokenizer.dump();
  return directory.string();
}

std::string GuideTokenId(const std::string& character) {
  const ProgramResult ids = RunProgram({"tokenize", "-m", GuideModel(), "--no-add-special-tokens", character});
  const nlohmann::json list = nlohmann::json::parse(ids.out);
  return list.size() == 1 ? list[0].dump() : "";
}

std::map<std::string, nlohmann::json> ReadBatchRecords(const std::string& path) {
  std::map<std::string, nlohmann::json> records;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    nlohmann::json record = nlohmann::json::parse(line);
    std::string id = record.at("custom_id").get<std::string>();
    EXPECT_TRUE(records.emplace(std::move(id), std::move(record)).second) << line;
  }
  return records;
}

ProgramOptions Input(const std::string& input) {
  ProgramOptions options;
  options.input = input;
  return options;
}

ProgramResult RunProgram(const std::vector<std::string>& arguments, const ProgramOptions& options) {
  ProgramResult result;
  signal(SIGPIPE, SIG_IGN);
  int in[2];
  int out[2];
  int err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return result;
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGPIPE, SIG_DFL);
    dup2(in[0], STDIN_FILENO);
    if (options.redirect_out.empty()) {
      dup2(out[1], STDOUT_FILENO);
    } else {
      dup2(open(options.redirect_out.c_str(), O_WRONLY), STDOUT_FILENO);
    }
    dup2(err[1], STDERR_FILENO);
    if (options.close_stdin) close(STDIN_FILENO);
    ExecProgram(options.program.empty() ? VLLMCLI_BINARY : options.program, arguments, options.environment);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  size_t sent = 0;
  bool in_open = true;
  bool out_open = true;
  bool err_open = true;
  bool signalled = false;
  std::string buffer(1 << 16, '\0');
  while (out_open || err_open) {
    if (in_open && sent == options.input.size() && !options.keep_stdin_open) {
      close(in[1]);
      in_open = false;
    }
    pollfd fds[3] = {{in_open && sent < options.input.size() ? in[1] : -1, POLLOUT, 0},
                     {out_open ? out[0] : -1, POLLIN, 0},
                     {err_open ? err[0] : -1, POLLIN, 0}};
    if (poll(fds, 3, kSilenceLimitMs) <= 0) {
      kill(pid, SIGKILL);
      break;
    }
    if (fds[0].revents != 0) {
      const ssize_t written = write(in[1], options.input.data() + sent, options.input.size() - sent);
      sent = written < 0 ? options.input.size() : sent + static_cast<size_t>(written);
    }
    if (fds[1].revents != 0) {
      const ssize_t got = read(out[0], buffer.data(), buffer.size());
      if (got > 0) result.out.append(buffer, 0, static_cast<size_t>(got));
      out_open = got > 0;
      if (options.close_out_after > 0 && result.out.size() >= options.close_out_after) out_open = false;
      if (!out_open) close(out[0]);
      if (got > 0 && options.signal_after_output != 0 && !signalled) {
        signalled = true;
        kill(pid, options.signal_after_output);
      }
    }
    if (fds[2].revents != 0) {
      const ssize_t got = read(err[0], buffer.data(), buffer.size());
      if (got > 0) result.err.append(buffer, 0, static_cast<size_t>(got));
      err_open = got > 0;
    }
  }
  int wait_status = 0;
  waitpid(pid, &wait_status, 0);
  result.status = ExitStatusOf(wait_status);
  if (in_open) close(in[1]);
  if (out_open) close(out[0]);
  close(err[0]);
  return result;
}

PtyProgram::PtyProgram(const std::vector<std::string>& arguments, const PtyOptions& options)
    : terminal_(options.num_rows, options.num_columns) {
  const winsize size = SizeOf(terminal_);
  if (openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) return;
  fcntl(master_, F_SETFD, FD_CLOEXEC);
  fcntl(master_, F_SETFL, O_NONBLOCK);
  modes_before_ = ModesOf(slave_);
  int reports[2];
  if (pipe2(reports, O_CLOEXEC) != 0) return;
  reports_ = reports[0];
  shell_ = fork();
  if (shell_ == 0) {
    close(master_);  // so that CloseTerminal closes the last descriptor
    RunShell(slave_, reports[1], options.program, arguments, options.environment);
  }
  close(reports[1]);
  int started = -1;
  if (read(reports_, &started, sizeof(started)) == static_cast<ssize_t>(sizeof(started))) pid_ = started;
}

PtyProgram::~PtyProgram() {
  if (pid_ > 0 && status_ < 0) kill(pid_, SIGKILL);
  if (shell_ > 0) waitpid(shell_, nullptr, 0);
  close(reports_);
  close(master_);
  close(slave_);
}

void PtyProgram::Send(const std::string& keys) {
  std::string_view rest = keys;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(120);
  while (!rest.empty() && status_ < 0 && Clock::now() < end) {
    const ssize_t written = write(master_, rest.data(), rest.size());
    if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
    // The program may have to write before it can read more.
    if (!rest.empty()) ReadSome(std::chrono::milliseconds(written > 0 ? 0 : 5));
  }
}

bool PtyProgram::ReadSome(std::chrono::milliseconds limit) {
  pollfd waits[2] = {{master_, POLLIN, 0}, {status_ < 0 ? reports_ : -1, POLLIN, 0}};
  if (poll(waits, 2, static_cast<int>(limit.count())) <= 0) return false;
  if (waits[1].revents != 0) {
    int report = 0;
    if (read(reports_, &report, sizeof(report)) == static_cast<ssize_t>(sizeof(report))) {
      if (WIFSTOPPED(report)) {
        ++num_stops_;
      } else {
        status_ = ExitStatusOf(report);
      }
    }
  }
  if (waits[0].revents == 0) return waits[1].revents != 0;
  char buffer[4096];
  const ssize_t got = read(master_, buffer, sizeof(buffer));
  if (got <= 0) return false;
  const std::string_view bytes(buffer, static_cast<size_t>(got));
  output_ += bytes;
  terminal_.Feed(bytes);
  const std::string replies = terminal_.TakeReplies();
  [[maybe_unused]] const ssize_t written = write(master_, replies.data(), replies.size());
  return true;
}

bool PtyProgram::WaitFor(const std::string& text, std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (true) {
    const size_t pos = output_.find(text, seen_);
    if (pos != std::string::npos) {
      seen_ = pos + text.size();
      return true;
    }
    if (Clock::now() >= end) return false;
    ReadSome(std::chrono::milliseconds(50));
  }
}

bool PtyProgram::WaitForScreen(const std::function<bool(const TerminalEmulator&)>& is_shown,
                               std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (!is_shown(terminal_)) {
    if (Clock::now() >= end) return false;
    ReadSome(std::chrono::milliseconds(50));
  }
  return true;
}

bool PtyProgram::WaitForScreen(const std::string& screen, std::chrono::milliseconds limit) {
  return WaitForScreen([&](const TerminalEmulator& terminal) { return terminal.Screen() == screen; }, limit);
}

void PtyProgram::Resize(int num_rows, int num_columns) {
  // The program may have drawn for the old size.
  while (ReadSome(std::chrono::milliseconds(0))) {
  }
  terminal_.Resize(num_rows, num_columns);
  const winsize size = SizeOf(terminal_);
  ioctl(master_, TIOCSWINSZ, &size);
}

int PtyProgram::WaitForExit(std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (status_ < 0 && Clock::now() < end) ReadSome(std::chrono::milliseconds(50));
  while (ReadSome(std::chrono::milliseconds(0))) {
  }
  return status_;
}

bool PtyProgram::WaitForStop(std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (num_stops_ == 0 && status_ < 0 && Clock::now() < end) ReadSome(std::chrono::milliseconds(50));
  if (num_stops_ == 0) return false;
  --num_stops_;
  return true;
}

void PtyProgram::CloseTerminal() {
  close(master_);
  master_ = -1;
}

bool PtyProgram::TerminalIsRestored() const { return ModesOf(slave_) == modes_before_; }

}  // namespace vllm::app
