// Executor: runs a scheduled step on every rank and returns what was sampled. One real form runs the rank in the
// calling thread, another a thread a rank; tests have a fake. Owned by EngineCore; called from its thread only.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/model_loader/load_report.h"
#include "engine/sched/model_runner_output.h"
#include "engine/sched/scheduler_output.h"
#include "kernels/threading/cancellation.h"

namespace vllm {

class Executor {
 public:
  virtual ~Executor() = default;

  // Bytes of one KV block (K and V, all tensors), all ranks together.
  virtual int64_t PageSizeBytes() const = 0;

  // The sliding window of each KV-cache group, 0: full attention.
  virtual std::vector<int64_t> KVGroupWindows() const { return {0}; }

  // Runs a small step on made-up tokens and returns the bytes that remain for KV blocks, all ranks together: the share
  // for the KV cache of what the machine and its limits leave after the weights and after the buffers that a step of
  // the largest allowed size takes. Throws what a rank threw.
  virtual int64_t DetermineAvailableMemory() = 0;

  // The limit behind the last DetermineAvailableMemory, for messages: "MemAvailable", "RLIMIT_AS (ulimit -v)".
  virtual std::string memory_bound() const { return {}; }

  // Bytes that remain beside a KV cache of `num_blocks` blocks, all of them in use.
  virtual int64_t SpareMemory(int64_t /*num_blocks*/) const { return std::numeric_limits<int64_t>::max(); }

  // Allocates the KV cache: num_blocks usable blocks with ids 1.., and the null block 0. Throws ResourceError.
  virtual void InitializeKVCache(int64_t num_blocks) = 0;

  // From now on ExecuteModel stops early when `flag` is set. Borrowed. Called once, before the first step.
  virtual void SetCancellation(const CancellationFlag* /*flag*/) {}

  // Runs one step. The result is valid until the next call. Throws StepCancelled when the flag was set before the step
  // was done: the ranks know its requests, tokens and blocks then, but the KV of its tokens is undefined, and the next
  // step may follow. Throws the first failing rank's exception otherwise; then the executor is dead: no rank waits for
  // another, and only the destructor may be called.
  virtual const ModelRunnerOutput& ExecuteModel(const SchedulerOutput& scheduler_output) = 0;
};

// An executor whose model is loaded, and how that went.
struct LoadedExecutor {
  std::unique_ptr<Executor> executor;
  LoadReport report;
};

}  // namespace vllm
