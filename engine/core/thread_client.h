// ThreadClient: runs an EngineCore on a separate thread, between a bounded input queue and an output queue that merges
// unread outputs. That thread constructs, runs and destroys the EngineCore. It shares only the handshake, the queues,
// the utility result, immutable requests, the StepInterrupt and the EngineMonitor with other threads. Owned by
// LLMEngine; call members from the front-end thread only.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/core/engine_core.h"
#include "engine/core/engine_core_client.h"
#include "engine/core/engine_core_monitor.h"
#include "engine/core/input_queue.h"
#include "engine/core/output_queue.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

class ThreadClient final : public EngineCoreClient {
 public:
  // Number of queued messages at which AddRequest blocks.
  static constexpr size_t kInputQueueCapacity = 1024;

  ThreadClient(const VllmConfig& config, ExecutorFactory factory, std::shared_ptr<TraceRecorder> trace = nullptr);
  ~ThreadClient() override;

  const EngineCoreReadyInfo& ready() const override { return ready_; }
  void AddRequest(EngineCoreRequestPtr request) override;
  void AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) override;
  bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) override;
  void Interrupt() override { output_queue_.Interrupt(); }
  int OutputFd() const override { return output_queue_.fd(); }
  bool ResetPrefixCache() override;
  SchedulerStats GetStats() override;
  void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) override;
  std::string TakeWarning() override;
  EngineCoreMonitor* monitor() override { return &monitor_; }
  void Shutdown(ShutdownMode mode) override;

 private:
  // The result of loading, written once by the engine thread.
  struct Handshake {
    Mutex mutex;
    CondVar changed;
    bool done GUARDED_BY(mutex) = false;
    EngineCoreReadyInfo ready GUARDED_BY(mutex);
    std::exception_ptr failure GUARDED_BY(mutex);
  };

  void ThreadMain(const VllmConfig& config, const ExecutorFactory& factory) noexcept;
  void BusyLoop(EngineCore& engine_core);
  // Processes a message. Returns false if the message ends the loop at once.
  bool Handle(EngineCoreMessage& message, EngineCore& engine_core, bool& draining);
  // Publishes `outputs` with the current statistics.
  void PublishStats(const EngineCore& engine_core, EngineCoreOutputs& outputs);
  // Keeps a warning of the engine core for TakeWarning.
  void CollectWarning(EngineCore& engine_core);
  // Sends a utility call and waits for its result.
  UtilityResult::Result CallUtility(EngineCoreMessage message);
  [[noreturn]] void ThrowDead();

  const std::shared_ptr<TraceRecorder> trace_;
  bool has_warned_ = false;
  Mutex warnings_mutex_;
  std::deque<std::string> warnings_ GUARDED_BY(warnings_mutex_);
  EngineCoreReadyInfo ready_;
  Handshake handshake_;
  InputQueue input_queue_{kInputQueueCapacity};
  OutputQueue output_queue_;
  StepInterrupt step_interrupt_;
  UtilityResult utility_result_;
  EngineCoreMonitor monitor_{input_queue_, step_interrupt_};
  std::thread thread_;
};

}  // namespace vllm
