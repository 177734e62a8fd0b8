// RankConnection: the connection of a rank other than 0 to rank 0. Owned by the process's main function; members on its
// thread only, unless they say otherwise.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/distributed/transport.h"
#include "engine/distributed/wire.h"
#include "engine/threading/event_fd.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

class RankConnection final : private Transport::Receiver {
 public:
  // Joins the job. Throws what the factory throws. `exit` ends the process with this status. It is called on the
  // transport's thread if rank 0 is gone (1), or if rank 0 ends the job before StartServing (0): the process then has
  // nothing left to do, and may be busy loading the model for minutes. If `exit` returns, as in tests, the end of the
  // job is a message in both cases.
  RankConnection(Transport::LinkFactory make_link, std::function<void(int status)> exit,
                 const Transport::Options& options = {});

  int rank() const { return transport_.rank(); }
  // Sends the description of this host, and waits for the place of this process.
  PlaceMessage Join(const HostMessage& host);
  // Waits until rank 0 ends the job, and ignores all other messages.
  void WaitForEnd();
  // From now on, the end of the job is a message like others.
  void StartServing() EXCLUDES(mutex_);

  void Send(std::string message) { transport_.Send(0, std::move(message)); }
  // Appends the messages that have arrived to `messages`. Never waits.
  void TakeMessages(std::vector<std::string>& messages) EXCLUDES(mutex_);
  // Readable while messages have arrived.
  int MessageFd() const { return arrived_.fd(); }

 private:
  void OnMessage(int from, std::string_view message) override EXCLUDES(mutex_);
  void OnFailure(int rank, const std::string& cause) override;
  void OnClosed() override EXCLUDES(mutex_);
  // Waits until a message has arrived or the job has ended.
  void Wait() EXCLUDES(mutex_);

  const std::function<void(int status)> exit_;
  EventFd arrived_;
  Mutex mutex_;
  bool serves_ GUARDED_BY(mutex_) = false;
  bool has_ended_ GUARDED_BY(mutex_) = false;
  std::vector<std::string> messages_ GUARDED_BY(mutex_);
  Transport transport_;  // the last member, so that its thread ends before the others are destroyed
};

}  // namespace vllm
