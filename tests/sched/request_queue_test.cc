#include "engine/sched/request_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

struct Requests {
  Request* Make(RequestId id, int64_t priority = 0, int64_t arrival_ms = 0) {
    owned.push_back(std::make_unique<Request>(MakeRequest(id, {1}, {.priority = priority, .arrival_ms = arrival_ms})));
    return owned.back().get();
  }
  std::vector<std::unique_ptr<Request>> owned;
};

std::vector<RequestId> Drain(RequestQueue& queue) {
  std::vector<RequestId> ids;
  while (!queue.empty()) ids.push_back(queue.Pop()->id());
  return ids;
}

using Ids = std::vector<RequestId>;

TEST(RequestQueueTest, FcfsKeepsTheOrderOfArrival) {
  Requests requests;
  FcfsRequestQueue queue;
  EXPECT_EQ(queue.Peek(), nullptr);
  for (RequestId id = 1; id <= 4; ++id) queue.Add(requests.Make(id, -static_cast<int64_t>(id)));
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(queue.Peek()->id(), 1u);
  EXPECT_EQ(Drain(queue), (Ids{1, 2, 3, 4}));
}

TEST(RequestQueueTest, FcfsPutsAPreemptedRequestFirst) {
  Requests requests;
  FcfsRequestQueue queue;
  queue.Add(requests.Make(1));
  queue.Prepend(requests.Make(2));
  queue.Prepend(requests.Make(3));
  queue.Add(requests.Make(4));
  EXPECT_EQ(Drain(queue), (Ids{3, 2, 1, 4}));
}

TEST(RequestQueueTest, FcfsRemovesARequestFromAnyPosition) {
  Requests requests;
  FcfsRequestQueue queue;
  std::vector<Request*> all;
  for (RequestId id = 1; id <= 5; ++id) queue.Add(all.emplace_back(requests.Make(id)));
  queue.Remove(all[2]);
  queue.Remove(all[0]);
  queue.Remove(all[4]);
  EXPECT_EQ(Drain(queue), (Ids{2, 4}));
  queue.Add(all[0]);
  EXPECT_EQ(Drain(queue), (Ids{1}));
}

TEST(RequestQueueTest, PriorityOrdersByPriorityThenArrivalThenId) {
  Requests requests;
  PriorityRequestQueue queue;
  queue.Add(requests.Make(5, 1, 10));
  queue.Add(requests.Make(4, 0, 30));
  queue.Add(requests.Make(3, 0, 20));
  queue.Add(requests.Make(2, 1, 10));
  queue.Add(requests.Make(1, -1, 99));
  EXPECT_EQ(queue.Peek()->id(), 1u);
  EXPECT_EQ(Drain(queue), (Ids{1, 3, 4, 2, 5}));
}

TEST(RequestQueueTest, PriorityGivesAPreemptedRequestNoAdvantage) {
  Requests requests;
  PriorityRequestQueue queue;
  queue.Add(requests.Make(1, 0, 1));
  queue.Prepend(requests.Make(2, 5, 0));
  EXPECT_EQ(Drain(queue), (Ids{1, 2}));
}

TEST(RequestQueueTest, PriorityOrderAgreesWithSortingAfterRandomRemovals) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Requests requests;
    PriorityRequestQueue queue;
    std::vector<Request*> expected_order;
    const auto by_order = [](const Request* a, const Request* b) {
      return std::tuple(a->core()->priority, a->core()->arrival_time, a->id()) <
             std::tuple(b->core()->priority, b->core()->arrival_time, b->id());
    };
    for (RequestId id = 1; id <= 60; ++id) {
      expected_order.push_back(requests.Make(id, random() % 4, random() % 4));
      queue.Add(expected_order.back());
      if (random() % 3 == 0) {
        const size_t index = random() % expected_order.size();
        queue.Remove(expected_order[index]);
        expected_order.erase(expected_order.begin() + static_cast<std::ptrdiff_t>(index));
      }
    }
    std::sort(expected_order.begin(), expected_order.end(), by_order);
    Ids expected;
    for (const Request* request : expected_order) expected.push_back(request->id());
    ASSERT_EQ(Drain(queue), expected);
  }
}

TEST(RequestQueueTest, PolicyChoosesTheQueue) {
  Requests requests;
  const auto fcfs = CreateRequestQueue(SchedulingPolicy::kFcfs);
  const auto priority = CreateRequestQueue(SchedulingPolicy::kPriority);
  for (RequestId id = 1; id <= 2; ++id) fcfs->Add(requests.Make(id, -static_cast<int64_t>(id)));
  for (RequestId id = 1; id <= 2; ++id) priority->Add(requests.Make(id, -static_cast<int64_t>(id)));
  EXPECT_EQ(Drain(*fcfs), (Ids{1, 2}));
  EXPECT_EQ(Drain(*priority), (Ids{2, 1}));
}

}  // namespace
}  // namespace vllm
