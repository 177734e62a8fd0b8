// Executor: runs a scheduled step on every rank and returns the sampled tokens. Programs use TensorParallelExecutor;
// many tests use a fake. Owned by EngineCore and called from its thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/model_loader/load_report.h"
#include "engine/sched/model_runner_output.h"
#include "engine/sched/scheduler_output.h"
#include "engine/spec_decode/proposer.h"
#include "kernels/threading/cancellation.h"

namespace vllm {

struct LoRAAdapter;

class Executor {
 public:
  virtual ~Executor() = default;

  // Returns the bytes of one KV block: K and V of all layers of the largest KV-cache group, summed over all ranks.
  virtual int64_t PageSizeBytes() const = 0;

  // Returns the sliding window of each KV-cache group, in tokens; 0: full attention.
  virtual std::vector<int64_t> KVGroupWindows() const { return {0}; }

  // Returns the blocks of one recurrent state; 0: the model has none.
  virtual int64_t NumStateBlocks() const { return 0; }

  // Runs a small step on dummy tokens and returns the bytes available for the KV blocks of all ranks of this engine: a
  // share of the memory that remains after the weights and the buffers of the largest allowed step. Rethrows a rank's
  // exception.
  virtual int64_t DetermineAvailableMemory() = 0;

  // Returns the name of the limit that determined the last result of DetermineAvailableMemory, such as "MemAvailable"
  // or "RLIMIT_AS (ulimit -v)".
  virtual std::string memory_bound() const { return {}; }

  // Returns the bytes of memory that remain if all of `num_blocks` KV blocks are in use, by each data-parallel engine.
  virtual int64_t SpareMemory(int64_t /*num_blocks*/) const { return std::numeric_limits<int64_t>::max(); }

  // Allocates the KV cache: num_blocks usable blocks with ids from 1, and the null block 0. Throws ResourceError.
  virtual void InitializeKVCache(int64_t num_blocks) = 0;

  // Makes ExecuteModel stop early once `flag` is set. Call this once, before the first step. The flag is borrowed and
  // must outlive the executor.
  virtual void SetCancellation(const kernels::CancellationFlag* /*flag*/) {}

  // Returns the time that each rank has spent in completed steps since start, including the time it waited for other
  // ranks; empty if unknown. [num_ranks]
  virtual std::span<const std::chrono::duration<double>> RankTimes() const { return {}; }

  // Gives the model a LoRA adapter as number `slot` of its adapters, and forgets those from that number on. Call
  // between steps; no running request may use a forgotten adapter. Throws ModelError if the adapter does not fit the
  // model, and ResourceError; the model then has `slot` adapters.
  virtual void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter);

  // Copies all K and V of a block, of all ranks and of all layers of its KV-cache group in a fixed order, to or from
  // `payload`, [PageSizeBytes()]. Call these between steps. REQUIRES: CanCopyBlocks(); the KV cache is allocated.
  virtual void CopyBlockOut(int32_t /*block_id*/, std::span<std::byte> /*payload*/) {}
  virtual void CopyBlockIn(int32_t /*block_id*/, std::span<const std::byte> /*payload*/) {}
  virtual bool CanCopyBlocks() const { return false; }

  // Runs one step. The result is valid until the next call. Throws StepCancelled if the flag cut the step short. The
  // workers have then received the step's requests, tokens and blocks, but the KV of its tokens is undefined, and
  // another step may follow. If a rank fails, rethrows the first exception. The executor is dead then: no rank waits
  // for another, and only the destructor may be called.
  virtual const ModelRunnerOutput& ExecuteModel(const SchedulerOutput& scheduler_output) = 0;
};

inline void Executor::AddLoRA(size_t /*slot*/, const std::shared_ptr<const LoRAAdapter>& /*adapter*/) {
  throw std::logic_error("this executor has no LoRA adapters");
}

// An executor with a loaded model, and the report on how the model was loaded.
struct LoadedExecutor {
  std::unique_ptr<Executor> executor;
  LoadReport report;
  std::unique_ptr<Proposer> proposer = nullptr;  // replaces that of VllmConfig::speculative; for tests
};

}  // namespace vllm
