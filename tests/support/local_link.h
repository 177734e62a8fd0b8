// LocalHub and LocalLink: packets between "ranks" that are threads of one process. A rank can be killed at any moment,
// as by kill -9: its packets vanish, and the others learn nothing unless the hub reports deaths. The hub outlives its
// links; any thread.
#pragma once

#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/distributed/packet_link.h"

namespace vllm::testing_support {

class LocalHub {
 public:
  // `reports_deaths`: the other ranks get a kFailed event, as from an MPI with fault tolerance.
  explicit LocalHub(int size, bool reports_deaths = true) : size_(size), reports_deaths_(reports_deaths) {
    queues_.resize(static_cast<size_t>(size * size));
    told_.resize(static_cast<size_t>(size));
    num_sent_.resize(static_cast<size_t>(size));
    limits_.resize(static_cast<size_t>(size), std::numeric_limits<int>::max());
  }

  int size() const { return size_; }
  void Kill(int rank) {
    const std::lock_guard lock(mutex_);
    dead_.insert(rank);
  }
  // Kills `rank` when it has sent this many packets, those before the call included.
  void KillAfter(int rank, int num_packets) {
    const std::lock_guard lock(mutex_);
    limits_[static_cast<size_t>(rank)] = num_packets;
  }

 private:
  friend class LocalLink;

  std::deque<std::string>& Queue(int from, int to) { return queues_[static_cast<size_t>(from * size_ + to)]; }

  const int size_;
  const bool reports_deaths_;
  std::mutex mutex_;
  std::vector<std::deque<std::string>> queues_;  // [from, to]
  std::set<int> dead_;
  std::vector<std::set<int>> told_;  // [rank] the deaths that it knows
  std::vector<int> num_sent_;        // [rank] packets
  std::vector<int> limits_;          // [rank] of num_sent_
};

class LocalLink final : public PacketLink {
 public:
  LocalLink(LocalHub& hub, int rank) : hub_(hub), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_.size(); }

  void Send(int to, std::string_view packet) override {
    const std::lock_guard lock(hub_.mutex_);
    if (hub_.dead_.contains(rank_)) return;
    const auto index = static_cast<size_t>(rank_);
    if (hub_.num_sent_[index] >= hub_.limits_[index]) {
      hub_.dead_.insert(rank_);
      return;
    }
    ++hub_.num_sent_[index];
    if (!hub_.dead_.contains(to)) hub_.Queue(rank_, to).emplace_back(packet);
    sent_.push_back(to);
  }

  void Poll(std::vector<Event>& events) override {
    events.clear();
    received_.clear();
    const std::lock_guard lock(hub_.mutex_);
    if (hub_.dead_.contains(rank_)) {
      // A process would be gone. A thread has to learn that it is.
      if (std::exchange(knows_its_death_, true)) return;
      for (int rank = 0; rank < hub_.size(); ++rank) events.push_back({EventKind::kFailed, rank, {}, "killed"});
      return;
    }
    for (const int to : std::exchange(sent_, {})) events.push_back({EventKind::kSent, to, {}, {}});
    for (int from = 0; from < hub_.size(); ++from) {
      std::deque<std::string>& queue = hub_.Queue(from, rank_);
      if (hub_.dead_.contains(from)) {
        if (hub_.reports_deaths_ && hub_.told_[static_cast<size_t>(rank_)].insert(from).second) {
          events.push_back({EventKind::kFailed, from, {}, "killed"});
        }
        continue;
      }
      if (queue.empty()) continue;
      received_.push_back(std::make_unique<std::string>(std::move(queue.front())));
      queue.pop_front();
      events.push_back({EventKind::kReceived, from, *received_.back(), {}});
    }
  }

 private:
  LocalHub& hub_;
  const int rank_;
  bool knows_its_death_ = false;
  std::vector<int> sent_;
  std::vector<std::unique_ptr<std::string>> received_;
};

}  // namespace vllm::testing_support
