// EngineCore: schedule -> run -> update, over one Executor and one Scheduler. Owned by a client; every member is called
// from the thread that constructed it (the caller's with InprocClient, the busy loop's with ThreadClient).
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

namespace vllm {

class Scheduler;

class EngineCore {
 public:
  // Loads the model, sizes and allocates the KV cache. Throws what the executor throws, and ResourceError when not even
  // one KV block fits. `interrupt` may end steps early; borrowed, null: none does.
  EngineCore(const VllmConfig& config, const ExecutorFactory& factory, StepInterrupt* interrupt = nullptr);
  ~EngineCore();
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;

  const EngineCoreReadyInfo& ready() const { return ready_; }

  // A request that can never fit, or whose id is in use, becomes a FinishReason::kError output of the next Step.
  void AddRequest(EngineCoreRequestPtr request);
  void AbortRequests(std::span<const RequestId> request_ids);

  // Whether Step has anything to run, to send to the ranks or to report.
  bool HasRequests() const;
  bool HasUnfinishedRequests() const;

  // Clears `outputs` and runs one step into it. Returns whether the executor ran. A step that is interrupted is taken
  // back: its requests compute the same tokens again later. Throws what the executor threw, and std::logic_error when
  // requests are unfinished and none of them can be scheduled; the engine is dead then. A decode step allocates nothing
  // once the buffers have grown.
  bool Step(EngineCoreOutputs& outputs);

  bool ResetPrefixCache();
  SchedulerStats GetStats() const;
  // For tests.
  const Scheduler& scheduler() const { return *scheduler_; }

 private:
  // Runs the step on the ranks and takes its results in, or rolls it back when it was interrupted.
  void Execute(const SchedulerOutput& scheduler_output, EngineCoreOutputs& outputs);
  [[noreturn]] void ThrowStuck() const;

  EngineCoreReadyInfo ready_;
  StepInterrupt* interrupt_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::pair<RequestId, std::string>> rejected_;
};

// How many usable KV blocks to allocate. One more block, the null block, is paid for out of `memory_bytes`. Never more
// than max_num_seqs sequences of max_model_len tokens can use. Throws ResourceError, with the arithmetic and
// `memory_bound`, the name of the limit behind `memory_bytes`, when none fits.
int64_t GetNumBlocks(const VllmConfig& config, int64_t memory_bytes, int64_t block_bytes,
                     const std::string& memory_bound = {});

}  // namespace vllm
