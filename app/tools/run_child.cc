#include "app/tools/run_child.h"

#include <poll.h>

#include <algorithm>
#include <vector>

namespace vllm::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(2);
constexpr int kMaxWaitMs = 100;

// Keeps the beginning of standard output and the end of standard error.
class ChildOutput {
 public:
  ChildOutput(size_t max_output_bytes, ChildResult& result) : max_output_bytes_(max_output_bytes), result_(result) {}

  // Read what the pipes have. Return false if there is nothing more to read now.
  bool ReadOutput(ChildProcess& child) {
    if (child.output_fd() < 0) return false;
    buffer_.clear();
    if (!ReadAvailable(child.output_fd(), buffer_)) child.CloseOutput();
    num_read_ += static_cast<int64_t>(buffer_.size());
    const size_t kept = std::min(buffer_.size(), max_output_bytes_ - result_.output.size());
    result_.output.append(buffer_, 0, kept);
    result_.num_omitted_bytes += static_cast<int64_t>(buffer_.size() - kept);
    return !buffer_.empty();
  }
  bool ReadError(ChildProcess& child) {
    if (child.error_fd() < 0) return false;
    std::string& text = result_.error_output;
    const size_t size = text.size();
    if (!ReadAvailable(child.error_fd(), text)) child.CloseError();
    const size_t added = text.size() - size;
    num_read_ += static_cast<int64_t>(added);
    if (text.size() > ChildResult::kMaxErrorBytes) text.erase(0, text.size() - ChildResult::kMaxErrorBytes);
    return added > 0;
  }
  // Reads the rest after the end of the process. Another process may still have the pipes open.
  void ReadRest(ChildProcess& child) {
    while (!is_too_long() && ReadOutput(child)) {
    }
    while (!is_too_long() && ReadError(child)) {
    }
  }
  bool is_too_long() const { return num_read_ > ChildResult::kMaxReadBytes; }

 private:
  size_t max_output_bytes_;
  ChildResult& result_;
  std::string buffer_;
  int64_t num_read_ = 0;
};

}  // namespace

ChildResult RunChild(const ChildCommand& command, std::string_view input, const ChildLimits& limits,
                     std::span<const PollHook> hooks) {
  ChildResult result;
  ChildProcess child(command);
  ChildOutput output(limits.max_output_bytes, result);
  const Clock::time_point end = Clock::now() + limits.timeout;
  if (input.empty()) child.CloseInput();
  const auto stop = [&](ChildResult::End why) {
    result.end = why;
    child.Terminate(kGrace);
    output.ReadRest(child);
    result.end_text = child.EndText();
    return result;
  };
  std::vector<pollfd> fds;
  while (!child.HasEnded()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return stop(ChildResult::End::kTimedOut);
    // poll() ignores negative descriptors.
    fds = {{child.output_fd(), POLLIN, 0},
           {child.error_fd(), POLLIN, 0},
           {child.input_fd(), POLLOUT, 0},
           {child.end_fd(), POLLIN, 0}};
    for (const PollHook& hook : hooks) fds.push_back({hook.fd, POLLIN, 0});
    poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left, kMaxWaitMs)));
    if (fds[0].revents != 0) output.ReadOutput(child);
    if (fds[1].revents != 0) output.ReadError(child);
    // A program that ignores its input may close it.
    if (fds[2].revents != 0 && (!WriteAvailable(child.input_fd(), input) || input.empty())) child.CloseInput();
    if (output.is_too_long()) return stop(ChildResult::End::kTooMuchOutput);
    for (size_t i = 0; i < hooks.size(); ++i) {
      if (fds[4 + i].revents != 0 && !hooks[i].on_ready()) return stop(ChildResult::End::kInterrupted);
    }
  }
  // Until the child has its own session, Ctrl-C of the terminal ends it as well, maybe before the hook has run.
  for (const PollHook& hook : hooks) {
    pollfd ready = {hook.fd, POLLIN, 0};
    if (poll(&ready, 1, 0) > 0 && !hook.on_ready()) result.end = ChildResult::End::kInterrupted;
  }
  output.ReadRest(child);
  result.succeeded = child.succeeded();
  result.end_text = child.EndText();
  return result;
}

}  // namespace vllm::app
