// InputQueue: messages from the front end to the busy loop, in order. Adding a request waits while the queue is full.
// Aborts, utility calls and shutdown are queued even if it is full. Owned by ThreadClient; any number of producer
// threads, one consumer thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/engine_core_client.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/scheduler_stats.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

// The result of a utility call, for which the caller waits. Owned by ThreadClient, so it outlives the message.
class UtilityResult {
 public:
  struct Result {
    bool ok = false;
    SchedulerStats stats;
    std::exception_ptr failure = nullptr;  // what the call has thrown
  };
  void Reset() EXCLUDES(mutex_);
  void Set(const Result& result) EXCLUDES(mutex_);
  // Makes Wait return false, because no result will come. Does nothing if the result is set.
  void Abandon() EXCLUDES(mutex_);
  // Waits for Set or Abandon. Returns false if abandoned.
  bool Wait(Result& result) EXCLUDES(mutex_);

 private:
  enum class State : uint8_t { kWaiting, kDone, kAbandoned };
  Mutex mutex_;
  CondVar changed_;
  State state_ GUARDED_BY(mutex_) = State::kWaiting;
  Result result_ GUARDED_BY(mutex_);
};

enum class EngineCoreRequestType : uint8_t {
  kAdd,
  kAbort,
  kAbortWithOutput,
  kResetPrefixCache,
  kGetStats,
  kAddLoRA,
  kTakeSnapshot,
  kSetAdmissionPaused,  // to the value that EngineCoreMonitor has
  kShutdown,
};

// A message to the busy loop. The comment on a field names the message types that use it.
struct EngineCoreMessage {
  EngineCoreRequestType type = EngineCoreRequestType::kAdd;
  EngineCoreRequestPtr request = nullptr;                // kAdd
  std::vector<RequestId> ids = {};                       // kAbort, kAbortWithOutput
  UtilityResult* result = nullptr;                       // kResetPrefixCache, kGetStats, kAddLoRA
  size_t lora_slot = 0;                                  // kAddLoRA
  std::shared_ptr<const LoRAAdapter> adapter = nullptr;  // kAddLoRA
  ShutdownMode shutdown_mode = ShutdownMode::kAbort;     // kShutdown
};

class InputQueue {
 public:
  explicit InputQueue(size_t capacity) : capacity_(capacity) {}

  // Queues a message. For kAdd, waits while at least `capacity` messages are queued. Returns false if the queue is
  // closed before the message is queued.
  bool Push(EngineCoreMessage message) EXCLUDES(mutex_);

  // Replaces the contents of `messages` with all queued messages. With `wait`, sleeps until there is a message or the
  // queue is closed.
  void TakeAll(std::vector<EngineCoreMessage>& messages, bool wait) EXCLUDES(mutex_);

  // Closes the queue: waiting threads return, and queued messages are dropped. Idempotent.
  void Close() EXCLUDES(mutex_);

 private:
  const size_t capacity_;
  Mutex mutex_;
  CondVar not_empty_;
  CondVar not_full_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::vector<EngineCoreMessage> messages_ GUARDED_BY(mutex_);
};

}  // namespace vllm
