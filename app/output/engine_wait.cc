#include "app/output/engine_wait.h"

#include <poll.h>
#include <unistd.h>

#include <array>

#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"

namespace vllm {

Wake WaitForEngine(const LLMEngine& engine, int input_fd, std::chrono::milliseconds timeout, bool watches_stdout) {
  // poll() ignores negative descriptors. It always reports POLLERR; on a pipe that means the reader has closed it.
  std::array<pollfd, 4> fds = {{{SignalFd(), POLLIN, 0},
                                {engine.OutputFd(), POLLIN, 0},
                                {input_fd, POLLIN, 0},
                                {watches_stdout ? STDOUT_FILENO : -1, 0, 0}}};
  poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
  if ((fds[3].revents & POLLERR) != 0) throw OutputClosed("writing standard output: the reader has closed it");
  Wake wake;
  wake.signal = fds[0].revents != 0;
  wake.engine = fds[1].revents != 0 || engine.OutputFd() < 0;
  wake.input = fds[2].revents != 0;
  return wake;
}

}  // namespace vllm
