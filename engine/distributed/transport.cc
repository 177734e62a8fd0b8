#include "engine/distributed/transport.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "engine/config/errors.h"
#include "engine/threading/block_signals.h"

namespace vllm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHeadBytes = 4;
constexpr uint32_t kContinues = uint32_t{1} << 31;
// A gap in which this thread did not run counts as this much silence at most. A job that was stopped and continued, or
// a laptop that was closed, must not lose all ranks.
constexpr std::chrono::milliseconds kMaxTick{100};
// MPI has no descriptor to wait for, so the link is polled: often while messages come and go, else once per
// millisecond, which takes less than 1 % of a core.
constexpr std::chrono::milliseconds kBusyTime{2};
constexpr std::chrono::microseconds kBusyWait{50};
constexpr std::chrono::microseconds kIdleWait{1000};

void AppendHead(std::string& packet, uint32_t head) {
  for (int shift = 0; shift < 32; shift += 8) packet.push_back(static_cast<char>(head >> shift & 0xff));
}

uint32_t ReadHead(std::string_view bytes) {
  uint32_t head = 0;
  for (size_t i = 0; i < kHeadBytes; ++i) head |= uint32_t{static_cast<uint8_t>(bytes[i])} << 8 * i;
  return head;
}

}  // namespace

Transport::Transport(LinkFactory make_link, Receiver& receiver, const Options& options)
    : receiver_(receiver), options_(options) {
  {
    BlockSignals block_signals;
    try {
      thread_ = std::thread([this, make_link = std::move(make_link)] { ThreadMain(make_link); });
    } catch (const std::system_error& error) {
      throw ResourceError(std::string("cannot start the thread that talks to the other ranks: ") + error.what());
    }
  }
  std::exception_ptr failure;
  {
    MutexLock lock(mutex_);
    while (!started_) changed_.Wait(mutex_);
    failure = std::exchange(start_failure_, nullptr);
  }
  if (failure == nullptr) return;
  thread_.join();
  std::rethrow_exception(failure);
}

void Transport::ThreadMain(const LinkFactory& make_link) noexcept {
  pthread_setname_np(pthread_self(), "ranks");
  std::exception_ptr failure;
  try {
    link_ = make_link();
    rank_ = link_->rank();
    size_ = link_->size();
    peers_.resize(static_cast<size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) {
      peers_[static_cast<size_t>(rank)].is_connected = rank != rank_ && (rank_ == 0 || rank == 0);
    }
    last_time_ = last_activity_ = Clock::now();
  } catch (...) {
    failure = std::current_exception();
    link_.reset();
  }
  const bool ok = failure == nullptr;
  {
    MutexLock lock(mutex_);
    started_ = true;
    start_failure_ = std::move(failure);
    changed_.NotifyAll();
  }
  if (!ok) return;
  try {
    Run();
  } catch (const std::exception& error) {
    for (int rank = 0; rank < size_; ++rank) Fail(rank, error.what());
  }
  if (IsBroken()) link_->SetBroken();
  link_.reset();
  receiver_.OnClosed();
}

void Transport::Run() {
  std::optional<Clock::time_point> close_end;
  while (true) {
    const auto now = Clock::now();
    AdvanceTime(now);
    {
      MutexLock lock(mutex_);
      if (closing_ && !close_end) close_end = now + options_.close_limit;
    }
    bool is_active = TakeOutbox();
    is_active |= SendPackets();
    link_->Poll(events_);
    is_active |= !events_.empty();
    HandleEvents();
    if (close_end && (!HasUnsent() || now >= *close_end)) return;
    if (is_active) {
      last_activity_ = now;
    } else {
      Wait();
    }
  }
}

bool Transport::TakeOutbox() {
  std::vector<std::pair<int, std::string>> outbox;
  {
    MutexLock lock(mutex_);
    outbox.swap(outbox_);
  }
  for (auto& [rank, message] : outbox) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (peer.is_connected) peer.queue.push_back(std::move(message));
  }
  return !outbox.empty();
}

bool Transport::SendPackets() {
  bool has_sent = false;
  for (int rank = 0; rank < size_; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (peer.is_sending || peer.queue.empty()) continue;
    packet_.clear();
    while (!peer.queue.empty() && packet_.size() + kHeadBytes < PacketLink::kMaxPacketBytes) {
      const std::string& message = peer.queue.front();
      const size_t left = message.size() - peer.num_sent_bytes;
      const size_t count = std::min(left, PacketLink::kMaxPacketBytes - packet_.size() - kHeadBytes);
      AppendHead(packet_, static_cast<uint32_t>(count) | (count < left ? kContinues : 0));
      packet_.append(message, peer.num_sent_bytes, count);
      if (count < left) {
        peer.num_sent_bytes += count;
        break;
      }
      peer.num_sent_bytes = 0;
      peer.queue.pop_front();
    }
    peer.is_sending = true;
    peer.since_last_send = Duration(0);
    link_->Send(rank, packet_);
    has_sent = true;
  }
  return has_sent;
}

void Transport::HandleEvents() {
  for (const PacketLink::Event& event : events_) {
    Peer& peer = peers_[static_cast<size_t>(event.rank)];
    if (!peer.is_connected) continue;
    switch (event.kind) {
      case PacketLink::EventKind::kSent:
        peer.is_sending = false;
        break;
      case PacketLink::EventKind::kFailed:
        Fail(event.rank, event.cause);
        break;
      case PacketLink::EventKind::kReceived:
        peer.silence = Duration(0);
        try {
          Receive(event.rank, event.packet);
        } catch (const std::exception& error) {
          Fail(event.rank, error.what());
        }
        break;
    }
  }
}

void Transport::Receive(int from, std::string_view packet) {
  Peer& peer = peers_[static_cast<size_t>(from)];
  while (!packet.empty()) {
    if (packet.size() < kHeadBytes) throw std::runtime_error("it sent a packet with an incomplete frame");
    const uint32_t head = ReadHead(packet);
    packet.remove_prefix(kHeadBytes);
    const size_t count = head & ~kContinues;
    if (count > packet.size()) throw std::runtime_error("it sent a packet with an incomplete frame");
    const std::string_view frame = packet.substr(0, count);
    packet.remove_prefix(count);
    if (peer.partial.size() + count > kMaxMessageBytes) {
      throw std::runtime_error("it sent a message of more than " + std::to_string(kMaxMessageBytes) + " bytes");
    }
    if ((head & kContinues) != 0) {
      peer.partial += frame;
    } else if (!peer.partial.empty()) {
      peer.partial += frame;
      const std::string message = std::exchange(peer.partial, std::string());
      receiver_.OnMessage(from, message);
    } else if (!frame.empty()) {
      receiver_.OnMessage(from, frame);
    }
  }
}

void Transport::AdvanceTime(Clock::time_point now) {
  const Duration tick = std::min<Duration>(now - last_time_, kMaxTick);
  last_time_ = now;
  for (int rank = 0; rank < size_; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (!peer.is_connected) continue;
    peer.silence += tick;
    peer.since_last_send += tick;
    if (peer.silence > options_.silence_limit) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.silence_limit);
      Fail(rank, "no sign of life for " + std::to_string(seconds.count()) + " s");
    } else if (peer.since_last_send > options_.heartbeat_interval && peer.queue.empty() && !peer.is_sending) {
      peer.queue.emplace_back();
    }
  }
}

void Transport::Fail(int rank, const std::string& cause) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!peer.is_connected) return;
  peer.is_connected = false;
  peer.queue.clear();
  peer.partial.clear();
  SetBroken();
  receiver_.OnFailure(rank, cause);
}

bool Transport::HasUnsent() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.is_connected && (peer.is_sending || !peer.queue.empty()); });
}

void Transport::Wait() {
  const bool is_idle = Clock::now() - last_activity_ >= kBusyTime;
  {
    MutexLock lock(mutex_);
    // A message that has arrived since TakeOutbox has woken nobody.
    if (is_idle && !outbox_.empty()) return;
    is_idle_ = is_idle;
  }
  const auto time = is_idle ? kIdleWait : kBusyWait;
  const timespec limit = {0, std::chrono::nanoseconds(time).count()};
  pollfd fd = {wake_.fd(), POLLIN, 0};
  if (ppoll(&fd, 1, &limit, nullptr) > 0) wake_.Reset();
}

void Transport::Send(int to, std::string message) {
  {
    MutexLock lock(mutex_);
    outbox_.emplace_back(to, std::move(message));
    // A busy thread looks again soon. Waking it takes longer than everything else here.
    if (!std::exchange(is_idle_, false)) return;
  }
  wake_.Set();
}

bool Transport::IsBroken() const {
  MutexLock lock(mutex_);
  return is_broken_;
}

void Transport::SetBroken() {
  MutexLock lock(mutex_);
  is_broken_ = true;
}

void Transport::BeginClose() {
  {
    MutexLock lock(mutex_);
    closing_ = true;
  }
  wake_.Set();
}

void Transport::Close() {
  if (!thread_.joinable()) return;
  BeginClose();
  thread_.join();
}

}  // namespace vllm
