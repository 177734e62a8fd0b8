// PacketLink: moves packets between the processes ("ranks") of a distributed job. MpiLink does it with MPI; tests have
// links within one process. Packets between two ranks arrive in order. Owned by a Transport; all calls, the constructor
// and the destructor included, on the transport's thread, as MPI requires.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

class PacketLink {
 public:
  static constexpr size_t kMaxPacketBytes = size_t{64} << 10;

  enum class EventKind : uint8_t { kSent, kReceived, kFailed };
  struct Event {
    EventKind kind = EventKind::kSent;
    int rank = 0;             // the other process
    std::string_view packet;  // kReceived; valid until the next Poll
    std::string cause;        // kFailed
  };

  // Leaves the job. May wait until the other processes leave it too, unless SetBroken has been called.
  virtual ~PacketLink() = default;

  // A process of the job is gone, so waiting for all of them could take forever.
  virtual void SetBroken() {}
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Starts to send a copy of the packet. REQUIRES: packet.size() <= kMaxPacketBytes; the last packet to this rank has
  // been reported as kSent.
  virtual void Send(int to, std::string_view packet) = 0;
  // Replaces the contents of `events` with all events since the last call. Never waits. A failed rank has no further
  // events.
  virtual void Poll(std::vector<Event>& events) = 0;
};

}  // namespace vllm
