#include "engine/distributed/rank_connection.h"

#include <poll.h>

#include <utility>

namespace vllm {

RankConnection::RankConnection(Transport::LinkFactory make_link, std::function<void(int status)> exit,
                               const Transport::Options& options)
    : exit_(std::move(exit)), transport_(std::move(make_link), *this, options) {}

void RankConnection::OnMessage(int /*from*/, std::string_view message) {
  bool closes = false;
  if (TypeOf(message) == MessageType::kShutdown && DecodeShutdown(message).is_broken) transport_.SetBroken();
  {
    MutexLock lock(mutex_);
    has_ended_ |= TypeOf(message) == MessageType::kShutdown;
    closes = has_ended_ && !serves_;
    messages_.emplace_back(message);
    arrived_.Set();
  }
  if (closes) transport_.BeginClose();
}

void RankConnection::OnFailure(int /*rank*/, const std::string& /*cause*/) {
  exit_(1);
  MutexLock lock(mutex_);
  has_ended_ = true;
  messages_.push_back(EncodeShutdown({ShutdownMode::kAbort, true}));
  arrived_.Set();
}

void RankConnection::OnClosed() {
  bool serves = false;
  {
    MutexLock lock(mutex_);
    serves = serves_;
  }
  // A server finds the end of the job among its messages.
  if (!serves) exit_(0);
}

void RankConnection::StartServing() {
  MutexLock lock(mutex_);
  serves_ = true;
}

void RankConnection::Wait() {
  {
    MutexLock lock(mutex_);
    if (has_ended_) return;
  }
  pollfd fd = {arrived_.fd(), POLLIN, 0};
  poll(&fd, 1, -1);
}

void RankConnection::TakeMessages(std::vector<std::string>& messages) {
  MutexLock lock(mutex_);
  arrived_.Reset();
  for (std::string& message : messages_) messages.push_back(std::move(message));
  messages_.clear();
}

PlaceMessage RankConnection::Join(const HostMessage& host) {
  Send(EncodeHost(host));
  while (true) {
    Wait();
    MutexLock lock(mutex_);
    if (messages_.empty()) continue;
    const std::string message = std::move(messages_.front());
    // The rest, such as the end of the job, is for the server. `arrived_` stays set for it.
    messages_.erase(messages_.begin());
    if (messages_.empty()) arrived_.Reset();
    return DecodePlace(message);
  }
}

void RankConnection::WaitForEnd() {
  std::vector<std::string> messages;
  while (true) {
    Wait();
    TakeMessages(messages);
    messages.clear();
    MutexLock lock(mutex_);
    if (has_ended_) return;
  }
}

}  // namespace vllm
