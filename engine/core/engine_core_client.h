// EngineCoreClient: the front end's only view of the engine core. InprocClient steps an EngineCore in the caller's
// thread, for tests and benchmarks. ThreadClient runs an EngineCore as a busy loop on a separate thread, between a
// bounded input queue and an output queue that merges unread outputs. Owned by LLMEngine. Call members from the
// front-end thread only, except Interrupt.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "engine/config/vllm_config.h"
#include "engine/core/step_interrupt.h"
#include "engine/executor/executor.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/engine_core_request.h"

namespace vllm {

class TraceRecorder;
class EngineMonitor;

// Figures that are known once the engine is ready.
struct EngineCoreReadyInfo {
  int64_t num_blocks = 0;
  int64_t max_model_len = 0;  // clamped to the number of tokens that fit into the KV cache
  // Bytes of memory that remain if the KV cache is full.
  int64_t spare_memory_bytes = std::numeric_limits<int64_t>::max();
  Seconds load_time{0};  // for loading the weights, profiling and allocating the KV cache
  LoadReport load_report;
  // Why the KV cache on disk that was asked for is off, or "". A fault: the user should know even if the default asked.
  std::string kv_disk_cache_failure;
  bool kv_disk_cache_has_fault = false;
};

enum class ShutdownMode : uint8_t { kAbort, kDrain };

class EngineCoreClient {
 public:
  virtual ~EngineCoreClient() = default;

  virtual const EngineCoreReadyInfo& ready() const = 0;

  // Sends a request to the engine. Blocks while the input queue is full. If the scheduler rejects the request,
  // GetOutputs later returns a FinishReason::kError output for it. Throws EngineDeadError if the engine is dead.
  virtual void AddRequest(EngineCoreRequestPtr request) = 0;
  // Ignores unknown ids and ids of finished requests. Once the engine has processed the abort, the request produces no
  // further output, but GetOutputs may still return its earlier outputs. ThreadClient stops a step early if every
  // request of the step is aborted; `urgency` says what happens to a step that also runs other requests.
  virtual void AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) = 0;

  // Fills `outputs` with all outputs since the last call; waits up to `timeout` if there are none. InprocClient runs
  // one step instead of waiting. Returns false if there are no outputs. If the engine has failed, first returns the
  // outputs from before the failure, then throws EngineDeadError with the first cause.
  virtual bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) = 0;

  // Makes the next GetOutputs return at once, with or without outputs. OutputFd is readable until then. Does nothing in
  // InprocClient, whose GetOutputs never waits. Any thread may call it.
  virtual void Interrupt() = 0;

  // A descriptor for poll() that is readable while outputs, an interrupt or the engine's failure are pending; -1 for
  // InprocClient.
  virtual int OutputFd() const = 0;

  // Utility calls: run on the engine thread between steps and return their result. They throw EngineDeadError if the
  // engine is dead.
  virtual bool ResetPrefixCache() = 0;
  virtual SchedulerStats GetStats() = 0;
  // Gives the engine a LoRA adapter as number `slot` of its adapters, and forgets those from that number on, which no
  // unfinished request may use. Throws ModelError if it does not fit the model, and ResourceError.
  virtual void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) = 0;

  // Returns a warning for the user about a failure that did not stop the engine, or an empty string. Returns each
  // warning once.
  virtual std::string TakeWarning() { return {}; }
  // Returns the monitor, through which other threads may watch and steer the engine; null for InprocClient.
  virtual EngineMonitor* monitor() { return nullptr; }

  // Shuts the engine down. kAbort drops all unfinished requests, even in the middle of a step; kDrain finishes them
  // first. Idempotent. The destructor does the same as kAbort.
  virtual void Shutdown(ShutdownMode mode) = 0;
};

// Called on the thread that will run the executor.
using ExecutorFactory = std::function<LoadedExecutor(const VllmConfig& config)>;

// Both functions return once the engine is ready. They rethrow exceptions from loading, profiling and allocation with
// their types. `trace` records the scheduler's decisions and may be null. REQUIRES: config.Finalize() has been called.
std::unique_ptr<EngineCoreClient> MakeInprocClient(const VllmConfig& config, const ExecutorFactory& factory);
std::unique_ptr<EngineCoreClient> MakeThreadClient(const VllmConfig& config, ExecutorFactory factory,
                                                   std::shared_ptr<TraceRecorder> trace = nullptr);

}  // namespace vllm
