#include "app/tools/tool_approval.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "app/output/ask_yes_no.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/type_ahead.h"

namespace vllm::app {
namespace {

constexpr int kMaxQuestions = 3;
constexpr size_t kMaxLineBytes = 100;

// Returns true if the terminal passes each key on at once, without showing it, as in a chat.
bool KeysArriveAtOnce() {
  termios modes{};
  return tcgetattr(STDIN_FILENO, &modes) == 0 && (modes.c_lflag & ICANON) == 0;
}

// Reads one line that is typed from now on.
class AnswerReader {
 public:
  explicit AnswerReader(std::span<const PollHook> hooks) : hooks_(hooks), echoes_(KeysArriveAtOnce()) {}

  // Keeps what was typed before the question for the next prompt: it cannot be the answer.
  static void SetAsideTypedKeys() {
    pollfd ready = {STDIN_FILENO, POLLIN, 0};
    std::array<char, 256> keys{};
    while (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
      const ssize_t count = read(STDIN_FILENO, keys.data(), keys.size());
      if (count <= 0) return;
      KeepTypedKeys({keys.data(), static_cast<size_t>(count)});
    }
  }

  // Returns the line in lower case, or nullopt at the end of the input or if a hook ends the wait.
  std::optional<std::string> Read() {
    std::string line;
    while (true) {
      std::vector<pollfd> fds = {{STDIN_FILENO, POLLIN, 0}};
      for (const PollHook& hook : hooks_) fds.push_back({hook.fd, POLLIN, 0});
      poll(fds.data(), fds.size(), -1);
      for (size_t i = 0; i < hooks_.size(); ++i) {
        if (fds[1 + i].revents == 0 || hooks_[i].on_ready()) continue;
        is_interrupted_ = true;
        return std::nullopt;
      }
      if (fds[0].revents == 0) continue;
      std::array<char, 1> key{};
      const ssize_t count = read(STDIN_FILENO, key.data(), key.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0 || key[0] == '\x04') return std::nullopt;
      if (key[0] == '\r' || key[0] == '\n') return line;
      TakeKey(key[0], line);
    }
  }
  bool is_interrupted() const { return is_interrupted_; }
  void EndLine() const {
    if (echoes_) terminal_.Write(SafeText("\n"));
  }

 private:
  void TakeKey(char key, std::string& line) const {
    if (key == '\x7f' || key == '\b') {
      if (line.empty()) return;
      line.pop_back();
      // Not through SafeText, which shows control characters.
      if (echoes_) [[maybe_unused]]
        const ssize_t count = write(STDERR_FILENO, "\b \b", 3);
      return;
    }
    if (key <= ' ' || key > '~' || line.size() >= kMaxLineBytes) return;
    if (echoes_) terminal_.Write(SafeText(std::string_view(&key, 1)));
    line += key >= 'A' && key <= 'Z' ? static_cast<char>(key - 'A' + 'a') : key;
  }

  std::span<const PollHook> hooks_;
  bool echoes_;
  bool is_interrupted_ = false;
  mutable OutputStream terminal_{STDERR_FILENO, "standard error"};
};

}  // namespace

ApprovePolicy ParseApprovePolicy(const std::string& value) {
  return value == "always" ? ApprovePolicy::kAlways : value == "never" ? ApprovePolicy::kNever : ApprovePolicy::kAsk;
}

ToolApproval::Verdict ToolApproval::Decide(const std::string& name, std::span<const PollHook> hooks) {
  if (policy_ == ApprovePolicy::kAlways || always_.contains(name)) return Verdict::kRun;
  if (policy_ == ApprovePolicy::kNever) return Verdict::kRefused;
  if (!CanAsk()) return Verdict::kNobodyToAsk;
  OutputStream terminal(STDERR_FILENO, "standard error");
  AnswerReader::SetAsideTypedKeys();
  AnswerReader reader(hooks);
  for (int i = 0; i < kMaxQuestions; ++i) {
    terminal.Write(SafeLine("run " + name + "? y: yes, n: no, a: always for this tool [y/n/a] "));
    const std::optional<std::string> answer = reader.Read();
    reader.EndLine();
    if (reader.is_interrupted()) return Verdict::kInterrupted;
    if (!answer || *answer == "n" || *answer == "no") return Verdict::kRefused;
    if (*answer == "a" || *answer == "always") always_.insert(name);
    if (*answer == "y" || *answer == "yes" || always_.contains(name)) return Verdict::kRun;
  }
  return Verdict::kRefused;
}

}  // namespace vllm::app
