// Tests Transport over links within the process: large messages, order, failures and silence.
#include "engine/distributed/transport.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "tests/support/local_link.h"

namespace vllm {
namespace {

using namespace std::chrono_literals;
using testing_support::LocalHub;
using testing_support::LocalLink;

// Keeps what arrives.
class Mailbox final : public Transport::Receiver {
 public:
  void OnMessage(int from, std::string_view message) override {
    const std::lock_guard lock(mutex_);
    messages_[from].emplace_back(message);
    changed_.notify_all();
    if (rejects) throw std::runtime_error("rejected");
  }
  void OnFailure(int rank, const std::string& cause) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(failures_.emplace(rank, cause).second);
    changed_.notify_all();
  }
  std::vector<std::string> Await(int from, size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return messages_[from].size() >= count; });
    return messages_[from];
  }
  std::string AwaitFailure(int rank) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failures_.contains(rank); });
    return failures_[rank];
  }
  bool rejects = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::vector<std::string>> messages_;
  std::map<int, std::string> failures_;
};

Transport::LinkFactory LinkOf(LocalHub& hub, int rank) {
  return [&hub, rank] { return std::make_unique<LocalLink>(hub, rank); };
}

TEST(TransportTest, MessagesOfAllSizesArriveInOrder) {
  LocalHub hub(2);
  Mailbox boxes[2];
  Transport zero(LinkOf(hub, 0), boxes[0], {});
  Transport one(LinkOf(hub, 1), boxes[1], {});
  std::vector<std::string> sent;
  for (const size_t size : {1, 2, 100, 65'531, 65'532, 65'533, 65'536, 200'000, 3, 5'000'000, 1}) {
    sent.emplace_back(size, static_cast<char>('a' + sent.size()));
  }
  for (const std::string& message : sent) zero.Send(1, message);
  for (const std::string& message : sent) one.Send(0, message);
  // Not EXPECT_EQ, which would compute the differences of megabytes.
  EXPECT_TRUE(boxes[1].Await(0, sent.size()) == sent);
  EXPECT_TRUE(boxes[0].Await(1, sent.size()) == sent);
}

TEST(TransportTest, CloseSendsWhatIsQueued) {
  LocalHub hub(2);
  Mailbox boxes[2];
  Transport one(LinkOf(hub, 1), boxes[1], {});
  {
    Transport zero(LinkOf(hub, 0), boxes[0], {});
    for (int i = 0; i < 100; ++i) zero.Send(1, std::string(100'000, 'x'));
  }
  EXPECT_EQ(boxes[1].Await(0, 100).size(), 100u);
}

TEST(TransportTest, DeathThatTheLinkReportsIsAFailure) {
  LocalHub hub(3);
  Mailbox boxes[3];
  Transport zero(LinkOf(hub, 0), boxes[0], {});
  Transport two(LinkOf(hub, 2), boxes[2], {});
  hub.Kill(1);
  EXPECT_EQ(boxes[0].AwaitFailure(1), "killed");
  // The other rank is not affected.
  zero.Send(2, "hello");
  EXPECT_EQ(boxes[2].Await(0, 1), std::vector<std::string>{"hello"});
}

TEST(TransportTest, SilenceIsAFailure) {
  LocalHub hub(2, /*reports_deaths=*/false);
  Mailbox boxes[2];
  Transport::Options options;
  options.silence_limit = 1000ms;
  options.heartbeat_interval = 20ms;
  Transport zero(LinkOf(hub, 0), boxes[0], options);
  Transport one(LinkOf(hub, 1), boxes[1], options);
  hub.Kill(1);
  EXPECT_EQ(boxes[0].AwaitFailure(1), "no sign of life for 1 s");
}

TEST(TransportTest, ExceptionOfTheReceiverEndsTheConnection) {
  LocalHub hub(2);
  Mailbox boxes[2];
  boxes[0].rejects = true;
  Transport zero(LinkOf(hub, 0), boxes[0], {});
  Transport one(LinkOf(hub, 1), boxes[1], {});
  one.Send(0, "bad");
  EXPECT_EQ(boxes[0].AwaitFailure(1), "rejected");
}

TEST(TransportTest, DamagedPacketEndsTheConnection) {
  for (const std::string& packet : {std::string("\1\0\0", 3), std::string("\5\0\0\0ab", 6)}) {
    LocalHub hub(2);
    Mailbox box;
    Transport zero(LinkOf(hub, 0), box, {});
    LocalLink link(hub, 1);
    link.Send(0, packet);
    EXPECT_EQ(box.AwaitFailure(1), "it sent a packet with an incomplete frame");
  }
}

TEST(TransportTest, ExceptionOfTheLinkReachesTheCaller) {
  Mailbox box;
  const Transport::LinkFactory factory = []() -> std::unique_ptr<PacketLink> { throw std::runtime_error("no MPI"); };
  EXPECT_THROW(Transport(factory, box, {}), std::runtime_error);
}

}  // namespace
}  // namespace vllm
