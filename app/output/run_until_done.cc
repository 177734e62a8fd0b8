#include "app/output/run_until_done.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"

namespace vllm::app {
namespace {

// Steps at least this often, so that progress on the terminal is updated.
constexpr int kMaxWaitMilliseconds = 100;

// Returns true if requests other than those of the background are unfinished.
bool HasForeground(const LLMEngine& engine, const BackgroundWork* background) {
  return engine.NumUnfinishedRequests() > (background == nullptr ? 0 : background->num_unfinished());
}

// Steps the engine, gives the background its outputs, and returns the others.
std::vector<RequestOutput> StepForeground(LLMEngine& engine, const BackgroundWork& background) {
  std::vector<RequestOutput> foreground;
  for (const RequestOutput& output : engine.Step(std::chrono::milliseconds(0))) {
    if (background.owns(output.request_id)) {
      background.on_output(output);
    } else {
      foreground.push_back(output);
    }
  }
  return foreground;
}

}  // namespace

void RunUntilDone(LLMEngine& engine, const RunCallbacks& callbacks) {
  while (true) {
    const bool more_requests = callbacks.add_requests && callbacks.add_requests();
    if (callbacks.background != nullptr) callbacks.background->add_requests();
    if (!more_requests && !HasForeground(engine, callbacks.background)) return;
    // poll() ignores negative descriptors and always reports POLLERR, which on a pipe means that the reader closed it.
    std::array<pollfd, 5> fds = {{{SignalFd(), POLLIN, 0},
                                  {engine.OutputFd(), POLLIN, 0},
                                  {callbacks.input_fd ? callbacks.input_fd() : -1, POLLIN, 0},
                                  {callbacks.watches_stdout ? STDOUT_FILENO : -1, 0, 0},
                                  {callbacks.other_fd ? callbacks.other_fd() : -1, POLLIN, 0}}};
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
    if (callbacks.background == nullptr) {
      callbacks.on_outputs(engine.Step(std::chrono::milliseconds(0)));
    } else {
      callbacks.on_outputs(StepForeground(engine, *callbacks.background));
    }
  }
}

void ServeBackground(LLMEngine& engine, const BackgroundWork& background) {
  StepForeground(engine, background);
  background.add_requests();
}

void PrintEngineWarning(LLMEngine& engine) {
  if (const std::string warning = engine.TakeWarning(); !warning.empty()) PrintWarning(warning);
}

}  // namespace vllm::app
