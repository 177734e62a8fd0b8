#include "engine/threading/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/config/errors.h"

namespace vllm {

EventFd::EventFd() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) throw ResourceError(std::string("cannot create an event descriptor: ") + std::strerror(errno));
}

EventFd::~EventFd() { close(fd_); }

// Set and Reset transfer eight bytes, which eventfd never splits. They fail only if there is nothing to do, because the
// counter is full (already readable) or zero (already reset).
void EventFd::Set() noexcept {
  const uint64_t one = 1;
  while (write(fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void EventFd::Reset() noexcept {
  uint64_t count = 0;
  while (read(fd_, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

}  // namespace vllm
