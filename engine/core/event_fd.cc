#include "engine/core/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/config/errors.h"

namespace vllm {

EventFd::EventFd() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) throw ResourceError(std::string("creation of an event descriptor: ") + std::strerror(errno));
}

EventFd::~EventFd() { close(fd_); }

// Both transfers are of eight bytes, which eventfd never splits. They fail only where nothing is left to do: the
// counter is full (readable already) or zero (reset already).
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
