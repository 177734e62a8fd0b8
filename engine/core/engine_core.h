// EngineCore: the engine's step loop. Each step schedules requests, executes the model and updates the requests. Owns
// one Executor and one Scheduler; owned by a client. Call every member from the thread that constructed it: the
// caller's with InprocClient, the busy loop's with ThreadClient.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/core/engine_core_client.h"
#include "engine/core/step_interrupt.h"
#include "engine/executor/executor.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/engine_snapshot.h"

namespace vllm {

class DiskKVConnector;
class Scheduler;
class Speculator;
class TraceRecorder;

class EngineCore {
 public:
  // Loads the model, then sizes and allocates the KV cache. Throws the executor's exceptions, ResourceError if the
  // memory is too small for one KV block per group, and ConfigError if --num-kv-blocks is smaller than the number of
  // groups. If the KV cache on disk cannot be opened, runs without it; see EngineCoreReadyInfo. A run that is traced
  // has none either, because a trace could not be replayed without its contents. `interrupt` may cut steps short, and
  // `trace` records the scheduler's decisions; both are borrowed and may be null.
  EngineCore(const VllmConfig& config, const ExecutorFactory& factory, StepInterrupt* interrupt = nullptr,
             TraceRecorder* trace = nullptr);
  ~EngineCore();
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;

  const EngineCoreReadyInfo& ready() const { return ready_; }

  // Queues a request. If the scheduler rejects the request (see Scheduler::AddRequest), the next Step returns a
  // FinishReason::kError output for it.
  void AddRequest(EngineCoreRequestPtr request);
  void AbortRequests(std::span<const RequestId> request_ids);

  // Returns true if Step has something to run, to send to the workers or to output. While admission is paused, requests
  // that wait for it do not count.
  bool HasRequests() const;
  bool HasUnfinishedRequests() const;

  // Runs one step and replaces the contents of `outputs` with the step's outputs. Returns true if the executor ran. If
  // the step is interrupted, rolls it back; its requests, unless aborted, compute the same tokens again later. Rethrows
  // the executor's exceptions, and throws std::logic_error if requests are unfinished but none can be scheduled; the
  // engine is dead then. A decode step allocates nothing once the buffers have grown.
  bool Step(EngineCoreOutputs& outputs);

  // See EngineMonitor. AbortWithOutput adds the request's final output to `outputs`.
  EngineSnapshot MakeSnapshot() const;
  void SetAdmissionPaused(bool paused);
  void AbortWithOutput(std::span<const RequestId> request_ids, EngineCoreOutputs& outputs);

  bool ResetPrefixCache();
  // See EngineCoreClient. If another exception than ModelError and ResourceError is thrown, the engine is dead.
  void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter);
  SchedulerStats GetStats() const;
  // Returns the next warning for the user, or "".
  std::string TakeWarning();
  // For tests.
  const Scheduler& scheduler() const { return *scheduler_; }

 private:
  // Runs the step on the ranks and updates the scheduler, or rolls the step back if it was interrupted.
  void Execute(const SchedulerOutput& scheduler_output, EngineCoreOutputs& outputs);
  void OpenKVDiskCache(const VllmConfig& config);
  // Returns false if the request names an adapter that this engine has not loaded, which only another process can do.
  bool HasAdapter(const EngineCoreRequest& request) const;
  [[noreturn]] void ThrowStuck() const;

  EngineCoreReadyInfo ready_;
  std::vector<std::string> lora_digests_;  // of the adapters, by slot
  StepInterrupt* interrupt_;
  TraceRecorder* trace_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<DiskKVConnector> kv_connector_;  // null: no KV cache on disk
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Speculator> speculator_;  // null: no speculation
  std::vector<std::pair<RequestId, std::string>> rejected_;
  bool step_failed_ = false;  // the last call of Step has thrown
  int64_t num_executed_steps_ = 0;
  Seconds step_time_{0};
  Seconds last_step_time_{0};
};

// Returns the number of usable KV blocks that fit, with the null block, into the smaller of `memory_bytes` and
// --kv-cache-memory, but at most as many as max_num_seqs sequences of max_model_len tokens can use. Blocks of 0 bytes
// always fit. Throws
// ResourceError if one block per KV-cache group does not fit. The message shows the calculation and `memory_bound`, the
// name of the limit that determines `memory_bytes`.
int64_t GetNumBlocks(const VllmConfig& config, int64_t memory_bytes, int64_t block_bytes,
                     const std::string& memory_bound = {});

}  // namespace vllm
