#include "engine/sched/request_queue.h"

#include <algorithm>
#include <tuple>

#include "kernels/threading/check.h"

namespace vllm {
namespace {

bool ComesBefore(const Request& a, const Request& b) {
  return std::tuple(a.core()->priority, a.core()->arrival_time, a.id()) <
         std::tuple(b.core()->priority, b.core()->arrival_time, b.id());
}

}  // namespace

void FcfsRequestQueue::Add(Request* request) {
  request->queue_prev = last_;
  request->queue_next = nullptr;
  (last_ == nullptr ? first_ : last_->queue_next) = request;
  last_ = request;
  ++size_;
}

void FcfsRequestQueue::Prepend(Request* request) {
  request->queue_prev = nullptr;
  request->queue_next = first_;
  (first_ == nullptr ? last_ : first_->queue_prev) = request;
  first_ = request;
  ++size_;
}

Request* FcfsRequestQueue::Pop() {
  Request* request = first_;
  Remove(request);
  return request;
}

void FcfsRequestQueue::Remove(Request* request) {
  VLLM_CHECK(size_ > 0);
  (request->queue_prev == nullptr ? first_ : request->queue_prev->queue_next) = request->queue_next;
  (request->queue_next == nullptr ? last_ : request->queue_next->queue_prev) = request->queue_prev;
  request->queue_prev = nullptr;
  request->queue_next = nullptr;
  --size_;
}

void FcfsRequestQueue::AppendFirst(size_t max, std::vector<const Request*>& requests) const {
  for (const Request* request = first_; request != nullptr && max > 0; request = request->queue_next, --max) {
    requests.push_back(request);
  }
}

void PriorityRequestQueue::AppendFirst(size_t max, std::vector<const Request*>& requests) const {
  std::vector<const Request*> sorted(heap_.begin(), heap_.end());
  max = std::min(max, sorted.size());
  std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(max), sorted.end(),
                    [](const Request* a, const Request* b) { return ComesBefore(*a, *b); });
  requests.insert(requests.end(), sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(max));
}

void PriorityRequestQueue::Add(Request* request) {
  heap_.push_back(request);
  request->heap_index = heap_.size() - 1;
  SiftUp(request->heap_index);
}

Request* PriorityRequestQueue::Pop() {
  Request* request = heap_.front();
  Remove(request);
  return request;
}

void PriorityRequestQueue::Remove(Request* request) {
  const size_t index = request->heap_index;
  VLLM_CHECK(index < heap_.size() && heap_[index] == request);
  Request* last = heap_.back();
  heap_.pop_back();
  if (last == request) return;
  // The last request fills the gap. It may then have to move up or down.
  Place(last, index);
  SiftUp(index);
  SiftDown(last->heap_index);
}

void PriorityRequestQueue::SiftUp(size_t index) {
  Request* request = heap_[index];
  for (size_t parent; index > 0; index = parent) {
    parent = (index - 1) / 2;
    if (!ComesBefore(*request, *heap_[parent])) break;
    Place(heap_[parent], index);
  }
  Place(request, index);
}

void PriorityRequestQueue::SiftDown(size_t index) {
  Request* request = heap_[index];
  for (size_t child; (child = 2 * index + 1) < heap_.size(); index = child) {
    if (child + 1 < heap_.size() && ComesBefore(*heap_[child + 1], *heap_[child])) ++child;
    if (!ComesBefore(*heap_[child], *request)) break;
    Place(heap_[child], index);
  }
  Place(request, index);
}

void PriorityRequestQueue::Place(Request* request, size_t index) {
  heap_[index] = request;
  request->heap_index = index;
}

RequestQueue& InteractiveFirstQueue::QueueOf(const Request& request) {
  if (request.is_interactive()) return interactive_;
  return *others_;
}

void InteractiveFirstQueue::AppendFirst(size_t max, std::vector<const Request*>& requests) const {
  interactive_.AppendFirst(max, requests);
  others_->AppendFirst(max - std::min(max, interactive_.size()), requests);
}

std::unique_ptr<RequestQueue> CreateRequestQueue(SchedulingPolicy policy) {
  std::unique_ptr<RequestQueue> others;
  if (policy == SchedulingPolicy::kPriority) {
    others = std::make_unique<PriorityRequestQueue>();
  } else {
    others = std::make_unique<FcfsRequestQueue>();
  }
  return std::make_unique<InteractiveFirstQueue>(std::move(others));
}

}  // namespace vllm
