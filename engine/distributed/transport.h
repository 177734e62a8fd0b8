// Transport: sends messages of any size between rank 0 and the other ranks of a distributed job, and notices when one
// of them is gone. A thread of the transport owns the PacketLink, so sending never waits. Messages that are queued
// while the previous packet is on its way travel together. Owned by Coordinator (rank 0) or RankConnection; Send from
// any thread, everything else from the thread that owns it.
//
// Packets are sequences of frames:
//
// clang-format off
//   packet = frame*                at most PacketLink::kMaxPacketBytes
//   frame  = head byte*            a part of a message; an empty last frame without parts before it is a sign of life
//   head   = 4 bytes, little-endian: the number of bytes, plus 2^31 if the message continues in the next frame
//
//   Example: the message "hello", then the first 2 bytes of a longer one:
//   05 00 00 00 68 65 6c 6c 6f   02 00 00 80 61 62
// clang-format on
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/distributed/packet_link.h"
#include "engine/threading/event_fd.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

class Transport {
 public:
  // Larger messages end the connection, so that a damaged one cannot exhaust memory.
  static constexpr size_t kMaxMessageBytes = size_t{4} << 30;

  // Called on the transport's thread; must not wait.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // An exception ends the connection to this rank, with its text as the cause.
    virtual void OnMessage(int from, std::string_view message) = 0;
    // Called once per rank; no messages of the rank follow.
    virtual void OnFailure(int rank, const std::string& cause) = 0;
    // The link has been destroyed; the thread is about to end.
    virtual void OnClosed() {}
  };

  struct Options {
    std::chrono::milliseconds heartbeat_interval{1000};
    // A rank that sends nothing for this long has failed. Only time in which this process itself runs counts.
    std::chrono::milliseconds silence_limit{10'000};
    // The longest time that Close gives other ranks to receive what has been sent.
    std::chrono::milliseconds close_limit{3000};
  };

  using LinkFactory = std::function<std::unique_ptr<PacketLink>()>;

  // Makes the link on a new thread and rethrows what the factory throws. Borrows `receiver`, which is called from now
  // on. Rank 0 exchanges messages with all ranks, the others only with rank 0.
  Transport(LinkFactory make_link, Receiver& receiver, const Options& options);
  ~Transport() { Close(); }
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Queues a message. Messages to a failed rank are dropped.
  void Send(int to, std::string message) EXCLUDES(mutex_);
  // Sends what is queued, destroys the link, and ends the thread. Idempotent.
  void Close() EXCLUDES(mutex_);
  // Starts to close, and returns at once. For the receiver.
  void BeginClose() EXCLUDES(mutex_);
  // The link is broken if a rank has failed, or if SetBroken was called, because another rank knows of one.
  bool IsBroken() const EXCLUDES(mutex_);
  void SetBroken() EXCLUDES(mutex_);

 private:
  using Duration = std::chrono::steady_clock::duration;

  // The state of the connection to one rank.
  struct Peer {
    bool is_connected = false;  // false for this rank, for ranks without a connection, and after a failure
    bool is_sending = false;
    std::deque<std::string> queue;
    size_t num_sent_bytes = 0;  // of queue.front()
    std::string partial;        // the frames of a message that continues
    Duration silence{0};        // since the rank sent something
    Duration since_last_send{0};
  };

  void ThreadMain(const LinkFactory& make_link) noexcept;
  void Run();
  // Moves queued messages to the peers. Returns true if there were any.
  bool TakeOutbox() EXCLUDES(mutex_);
  // Sends a packet to each peer that has something to send and nothing on its way. Returns true if it sent any.
  bool SendPackets();
  void Receive(int from, std::string_view packet);
  void HandleEvents();
  // Adds the time since the last call, sends signs of life, and finds silent peers.
  void AdvanceTime(std::chrono::steady_clock::time_point now);
  void Fail(int rank, const std::string& cause);
  bool HasUnsent() const;
  // Waits until Send or Close is called, or until it is time to poll the link again.
  void Wait();

  Receiver& receiver_;
  const Options options_;
  int rank_ = 0;
  int size_ = 0;
  EventFd wake_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool started_ GUARDED_BY(mutex_) = false;
  std::exception_ptr start_failure_ GUARDED_BY(mutex_);
  bool is_idle_ GUARDED_BY(mutex_) = false;  // the thread waits for longer than a moment
  bool closing_ GUARDED_BY(mutex_) = false;
  bool is_broken_ GUARDED_BY(mutex_) = false;
  std::vector<std::pair<int, std::string>> outbox_ GUARDED_BY(mutex_);

  // The rest belongs to the thread.
  std::unique_ptr<PacketLink> link_;
  std::vector<Peer> peers_;  // [size]
  std::vector<PacketLink::Event> events_;
  std::string packet_;
  std::chrono::steady_clock::time_point last_time_{};
  std::chrono::steady_clock::time_point last_activity_{};

  std::thread thread_;  // the last member, so that it ends before the others are destroyed
};

}  // namespace vllm
