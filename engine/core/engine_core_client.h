// EngineCoreClient: the front end's only view of the engine. InprocClient steps an EngineCore in the caller's thread
// (tests, bench); ThreadClient runs it as a busy loop on a thread of its own behind a bounded input queue and a merging
// output queue. Every member is called from the front-end thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "engine/config/vllm_config.h"
#include "engine/core/step_interrupt.h"
#include "engine/executor/executor.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/engine_core_request.h"

namespace vllm {

// What the engine says once it is ready.
struct EngineCoreReadyInfo {
  int64_t num_blocks = 0;
  int64_t max_model_len = 0;  // clamped to what the KV cache can hold
  // Memory that remains beside a full KV cache.
  int64_t spare_memory_bytes = std::numeric_limits<int64_t>::max();
  double load_seconds = 0.0;  // weights, profiling and cache allocation
  LoadReport load_report;
};

enum class ShutdownMode : uint8_t { kAbort, kDrain };

class EngineCoreClient {
 public:
  virtual ~EngineCoreClient() = default;

  virtual const EngineCoreReadyInfo& ready() const = 0;

  // Blocks while the input queue is full. A request that cannot ever fit comes back as a FinishReason::kError output.
  // Throws EngineDeadError when the engine is dead.
  virtual void AddRequest(EngineCoreRequestPtr request) = 0;
  // Ids that are unknown or finished are ignored. An aborted request gets no further output. A step in which all
  // requests are aborted is cut short at once; one that works for others as well, as `urgency` says.
  virtual void AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) = 0;

  // Fills `outputs` with all that has come since the last call; waits up to `timeout` for something to come.
  // In-process: runs one step. Returns false when nothing came. Throws EngineDeadError, with the first cause, when the
  // engine has failed; what came before the failure is given out first.
  virtual bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) = 0;

  // Makes the next GetOutputs return at once and OutputFd readable until then, though nothing may have come.
  virtual void Interrupt() = 0;

  // A descriptor that is readable while outputs (or the engine's death) wait, for poll(); -1 when there is none
  // (in-process).
  virtual int OutputFd() const = 0;

  // Utility calls: run on the engine's thread between steps and return its result.
  virtual bool ResetPrefixCache() = 0;
  virtual SchedulerStats GetStats() = 0;

  // Ends the engine: kAbort drops what runs, in the middle of a step, kDrain lets it finish. Idempotent; the destructor
  // aborts.
  virtual void Shutdown(ShutdownMode mode) = 0;
};

// The executor is made on the thread that will run it.
using ExecutorFactory = std::function<LoadedExecutor(const VllmConfig& config)>;

// Both return once the engine is ready and throw what loading, profiling or allocating threw, with its type.
// REQUIRES: config is final.
std::unique_ptr<EngineCoreClient> MakeInprocClient(const VllmConfig& config, ExecutorFactory factory);
std::unique_ptr<EngineCoreClient> MakeThreadClient(const VllmConfig& config, ExecutorFactory factory);

}  // namespace vllm
