// RequestQueue: the waiting requests, in the order of the scheduling policy. The links are stored in the requests, so
// removing an aborted request is cheap, and only the array of the priority heap allocates. Owned by the Scheduler;
// engine thread only.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/request/request.h"

namespace vllm {

class RequestQueue {
 public:
  virtual ~RequestQueue() = default;

  // Adds a new request.
  virtual void Add(Request* request) = 0;
  // Adds a request that lost its blocks: at the front, or with the priority policy at the position for its priority.
  virtual void Prepend(Request* request) = 0;
  // Returns the next request, or null.
  virtual Request* Peek() const = 0;
  // Removes and returns the next request. REQUIRES: the queue is not empty.
  virtual Request* Pop() = 0;
  // REQUIRES: the request is in this queue.
  virtual void Remove(Request* request) = 0;
  virtual size_t size() const = 0;
  // Appends the first requests in order, at most `max`. O(max), or O(size log size) with the priority policy.
  virtual void AppendFirst(size_t max, std::vector<const Request*>& requests) const = 0;
  bool empty() const { return size() == 0; }
};

// First come, first served. All operations are O(1).
class FcfsRequestQueue final : public RequestQueue {
 public:
  void Add(Request* request) override;
  void Prepend(Request* request) override;
  Request* Peek() const override { return first_; }
  Request* Pop() override;
  void Remove(Request* request) override;
  size_t size() const override { return size_; }
  void AppendFirst(size_t max, std::vector<const Request*>& requests) const override;

 private:
  Request* first_ = nullptr;
  Request* last_ = nullptr;
  size_t size_ = 0;
};

// Ordered by (priority, arrival time, request id), smallest first. Add, Prepend, Pop and Remove are O(log size).
class PriorityRequestQueue final : public RequestQueue {
 public:
  void Add(Request* request) override;
  void Prepend(Request* request) override { Add(request); }
  Request* Peek() const override { return heap_.empty() ? nullptr : heap_.front(); }
  Request* Pop() override;
  void Remove(Request* request) override;
  size_t size() const override { return heap_.size(); }
  void AppendFirst(size_t max, std::vector<const Request*>& requests) const override;

 private:
  void SiftUp(size_t index);
  void SiftDown(size_t index);
  void Place(Request* request, size_t index);

  std::vector<Request*> heap_;  // heap_[request->heap_index] == request
};

// Interactive requests, first come, first served, before the others in the order of a policy.
class InteractiveFirstQueue final : public RequestQueue {
 public:
  explicit InteractiveFirstQueue(std::unique_ptr<RequestQueue> others) : others_(std::move(others)) {}

  void Add(Request* request) override { QueueOf(*request).Add(request); }
  void Prepend(Request* request) override { QueueOf(*request).Prepend(request); }
  Request* Peek() const override { return interactive_.empty() ? others_->Peek() : interactive_.Peek(); }
  Request* Pop() override { return interactive_.empty() ? others_->Pop() : interactive_.Pop(); }
  void Remove(Request* request) override { QueueOf(*request).Remove(request); }
  size_t size() const override { return interactive_.size() + others_->size(); }
  void AppendFirst(size_t max, std::vector<const Request*>& requests) const override;

 private:
  RequestQueue& QueueOf(const Request& request);

  FcfsRequestQueue interactive_;
  std::unique_ptr<RequestQueue> others_;
};

std::unique_ptr<RequestQueue> CreateRequestQueue(SchedulingPolicy policy);

}  // namespace vllm
