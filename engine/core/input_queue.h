// InputQueue: what the front end tells the busy loop, in order. Adding requests is bounded and waits; aborts, utility
// calls and shutdown never wait, so that they get through while the queue is full. Any number of producers, one
// consumer.
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

// The result of a utility call, waited for by the caller. Lives in the client, longer than the message.
class UtilityResult {
 public:
  struct Result {
    bool ok = false;
    SchedulerStats stats;
  };
  void Reset() EXCLUDES(mutex_);
  void Set(const Result& result) EXCLUDES(mutex_);
  // No result will come, now and later.
  void Abandon() EXCLUDES(mutex_);
  // False when abandoned.
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

  // kAdd waits while `capacity` messages wait. False when the queue is closed, also when it closes meanwhile.
  bool Push(EngineCoreRequestType message) EXCLUDES(mutex_);

  // Swaps all waiting messages into `messages`, whose content is dropped. With `wait`, sleeps until there is one.
  void TakeAll(std::vector<EngineCoreRequestType>& messages, bool wait) EXCLUDES(mutex_);

  // Ends the queue: waiting producers return, messages are dropped. Idempotent.
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
