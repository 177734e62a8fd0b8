// EngineCoreClient: the front end's only view of the engine. InprocClient steps an EngineCore in the caller's thread,
// for tests and benchmarks. ThreadClient runs it as a busy loop on its own thread, between a bounded input queue and a
// merging output queue. Call members from the front-end thread only.
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

// The engine's state once it is ready.
struct EngineCoreReadyInfo {
  int64_t num_blocks = 0;
  int64_t max_model_len = 0;  // clamped to what the KV cache can hold
  // Memory that remains if the KV cache is full.
  int64_t spare_memory_bytes = std::numeric_limits<int64_t>::max();
  Seconds load_time{0};  // weights, profiling and cache allocation
  LoadReport load_report;
};

enum class ShutdownMode : uint8_t { kAbort, kDrain };

class EngineCoreClient {
 public:
  virtual ~EngineCoreClient() = default;

  virtual const EngineCoreReadyInfo& ready() const = 0;

  // Blocks while the input queue is full. A request that can never fit comes back as a FinishReason::kError output.
  // Throws EngineDeadError if the engine is dead.
  virtual void AddRequest(EngineCoreRequestPtr request) = 0;
  // Ignores unknown and finished ids. An aborted request gets no further output. A step in which all requests are
  // aborted stops early; `urgency` says what happens to a step that also runs other requests.
  virtual void AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) = 0;

  // Fills `outputs` with everything since the last call; waits up to `timeout` if there is nothing. InprocClient runs
  // one step. Returns false if nothing came. If the engine has failed, throws EngineDeadError with the first cause,
  // after what came before the failure was returned.
  virtual bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) = 0;

  // Makes the next GetOutputs return at once, with or without outputs, and OutputFd readable until then.
  virtual void Interrupt() = 0;

  // A descriptor for poll() that is readable while outputs or the engine's death are pending; -1 in-process.
  virtual int OutputFd() const = 0;

  // Utility calls run on the engine thread between steps and return their result.
  virtual bool ResetPrefixCache() = 0;
  virtual SchedulerStats GetStats() = 0;

  // Ends the engine. kAbort drops running requests in the middle of a step, kDrain finishes them. Idempotent; the
  // destructor aborts.
  virtual void Shutdown(ShutdownMode mode) = 0;
};

// Called on the thread that will run the executor.
using ExecutorFactory = std::function<LoadedExecutor(const VllmConfig& config)>;

// Both return once the engine is ready, and rethrow what loading, profiling or allocating threw, with its type.
// REQUIRES: config is final.
std::unique_ptr<EngineCoreClient> MakeInprocClient(const VllmConfig& config, const ExecutorFactory& factory);
std::unique_ptr<EngineCoreClient> MakeThreadClient(const VllmConfig& config, ExecutorFactory factory);

}  // namespace vllm
