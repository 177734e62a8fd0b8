// EventFd: a file descriptor that poll() reports as readable between Set and Reset. Owned by the object that signals
// with it. Any thread may call any member.
#pragma once

namespace vllm {

class EventFd {
 public:
  EventFd();  // throws ResourceError
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  void Set() noexcept;
  void Reset() noexcept;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace vllm
