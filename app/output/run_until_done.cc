#include "app/output/run_until_done.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"

namespace vllm::app {
namespace {

// Steps at least this often, so that progress on the terminal is updated.
constexpr int kMaxWaitMilliseconds = 100;

}  // namespace

void RunUntilDone(LLMEngine& engine, const RunCallbacks& callbacks) {
  while (true) {
    const bool more_requests = callbacks.add_requests && callbacks.add_requests();
    if (!more_requests && !engine.HasUnfinishedRequests()) return;
    // poll() ignores negative descriptors and always reports POLLERR, which on a pipe means that the reader closed it.
    std::array<pollfd, 4> fds = {{{SignalFd(), POLLIN, 0},
                                  {engine.OutputFd(), POLLIN, 0},
                                  {callbacks.input_fd ? callbacks.input_fd() : -1, POLLIN, 0},
                                  {callbacks.watches_stdout ? STDOUT_FILENO : -1, 0, 0}}};
    poll(fds.data(), fds.size(), kMaxWaitMilliseconds);
    if ((fds[3].revents & POLLERR) != 0) throw OutputClosed("writing standard output: the reader has closed it");
    if (fds[0].revents != 0) {
      if (callbacks.on_signal) {
        callbacks.on_signal();
      } else {
        ThrowIfInterrupted();
      }
    }
    if (fds[2].revents != 0 && callbacks.on_input) callbacks.on_input();
    callbacks.on_outputs(engine.Step(std::chrono::milliseconds(0)));
  }
}

}  // namespace vllm::app
