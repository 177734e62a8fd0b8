// PollHook: a descriptor to watch while the program waits for another process, so that signals and a batch in the
// background are served meanwhile. A plain value; main thread.
#pragma once

#include <functional>

namespace vllm::app {

struct PollHook {
  int fd = -1;
  // Called when `fd` is readable. Returns false to end the wait, for example after Ctrl-C. May throw.
  std::function<bool()> on_ready;
};

}  // namespace vllm::app
