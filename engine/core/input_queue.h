// InputQueue: messages from the front end to the busy loop, in order. Adding a request waits while the queue is full.
// Aborts, utility calls and shutdown never wait, so they get through. Any number of producers, one consumer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/engine_core_client.h"
#include "engine/core/thread_annotations.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/scheduler_stats.h"

namespace vllm {

// The result of a utility call. Its caller waits for it. Lives in the client, longer than the message.
class UtilityResult {
 public:
  struct Result {
    bool ok = false;
    SchedulerStats stats;
  };
  void Reset() EXCLUDES(mutex_);
  void Set(const Result& result) EXCLUDES(mutex_);
  // Says that no result will come, now or later.
  void Abandon() EXCLUDES(mutex_);
  // Returns false if abandoned.
  bool Wait(Result& result) EXCLUDES(mutex_);

 private:
  enum class State : uint8_t { kWaiting, kDone, kAbandoned };
  Mutex mutex_;
  CondVar changed_;
  State state_ GUARDED_BY(mutex_) = State::kWaiting;
  Result result_ GUARDED_BY(mutex_);
};

struct EngineCoreRequestType {
  enum class Kind : uint8_t { kAdd, kAbort, kResetPrefixCache, kGetStats, kShutdown };
  Kind kind = Kind::kAdd;
  EngineCoreRequestPtr request;                       // kAdd
  std::vector<RequestId> ids;                         // kAbort
  UtilityResult* reply = nullptr;                     // kResetPrefixCache, kGetStats
  ShutdownMode shutdown_mode = ShutdownMode::kAbort;  // kShutdown
};

class InputQueue {
 public:
  explicit InputQueue(size_t capacity) : capacity_(capacity) {}

  // kAdd waits while `capacity` messages are queued. Returns false if the queue is closed, or closes while waiting.
  bool Push(EngineCoreRequestType message) EXCLUDES(mutex_);

  // Swaps all queued messages into `messages`, whose contents are dropped. With `wait`, sleeps until there is one.
  void TakeAll(std::vector<EngineCoreRequestType>& messages, bool wait) EXCLUDES(mutex_);

  // Closes the queue: waiting producers return and messages are dropped. Idempotent.
  void Close() EXCLUDES(mutex_);

 private:
  const size_t capacity_;
  Mutex mutex_;
  CondVar not_empty_;
  CondVar not_full_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::vector<EngineCoreRequestType> messages_ GUARDED_BY(mutex_);
};

}  // namespace vllm
