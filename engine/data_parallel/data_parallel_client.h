// DataParallelClient: makes several engines look like one. Each engine has its own busy loop, scheduler and KV cache.
// The engines are threads of this process, which share the weights, or other processes (engine/distributed).
// DataParallelRouter chooses the engine of each request, which has no effect on its tokens. If an expendable engine
// dies, its requests continue on the others. If another one dies, all of them are shut down, and the client is dead.
// Owned by LLMEngine; call members from the front-end thread only. See engine_core_client.h for the contracts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/core/thread_client.h"
#include "engine/data_parallel/data_parallel_router.h"
#include "engine/threading/event_fd.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {

// An engine and what DataParallelClient knows about it.
struct DataParallelEngine {
  std::unique_ptr<EngineCoreClient> client;
  std::string name;         // for messages, such as "data-parallel engine 1 of 4"
  bool expendable = false;  // the client survives its death
  bool is_dead = false;
  int64_t num_finished = 0;  // sequences
};

// The engines of a client, and the monitor of all of them, which may refer to the engines.
struct DataParallelEngines {
  std::vector<DataParallelEngine> engines;
  std::unique_ptr<EngineMonitor> monitor;
};

class DataParallelClient final : public EngineCoreClient {
 public:
  // Runs config.parallel.data_parallel_size engines in this process. Loads the model on one engine after the other:
  // those after the first use the weights of the first. Divides config.cache.kv_cache_memory_bytes among the engines;
  // all other limits hold for each engine. Throws what loading throws, and ResourceError.
  DataParallelClient(const VllmConfig& config, const ExecutorFactory& factory);
  // Runs these engines, which must be ready and unused. Throws ResourceError. REQUIRES: there is at least one.
  DataParallelClient(const VllmConfig& config, DataParallelEngines engines);
  ~DataParallelClient() override;

  const EngineCoreReadyInfo& ready() const override { return ready_; }
  void AddRequest(EngineCoreRequestPtr request) override;
  void AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) override;
  bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) override;
  void Interrupt() override;
  int OutputFd() const override { return output_fd_.get(); }
  bool ResetPrefixCache() override;
  SchedulerStats GetStats() override;
  void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) override;
  // Names the expendable engines that have died, or returns the next warning of an engine.
  std::string TakeWarning() override;
  EngineMonitor* monitor() override { return monitor_.get(); }
  void Shutdown(ShutdownMode mode) override;

  const DataParallelRouter& router() const { return *router_; }
  const std::vector<DataParallelEngine>& engines() const { return engines_; }

 private:
  // An unfinished sequence: where it is, and the cost that the router knows. With beam search, only the first sequence
  // of the request has a cost.
  struct Route {
    int rank = 0;
    int64_t cost = 0;
    // Set only if an engine is expendable, of the first sequence of a request: the request, and the tokens that have
    // been returned. If the engine dies, the request continues after them elsewhere.
    EngineCoreRequestPtr request = nullptr;
    std::vector<int32_t> token_ids = {};
  };

  void AddToReady(const EngineCoreReadyInfo& engine);
  void ThrowIfDead() const;
  // Reacts to the death of an engine. Unless it was expendable, marks the client as dead, and stops the other engines
  // in the middle of their steps.
  void Die(int rank, const EngineDeadError& error);
  // Sends the unfinished requests of a dead engine to others.
  void Reroute(int rank, const EngineDeadError& error);
  // Routes the request and sends it to its engine. May change routes_ if that engine turns out to be dead.
  void Send(EngineCoreRequestPtr request, std::vector<int32_t> token_ids);
  // Adds the outputs of all engines to `outputs`, without waiting.
  void TakeOutputs(EngineCoreOutputs& outputs);
  // Adds the outputs of one engine, without those of requests that another engine runs now.
  void AddOutputs(int rank, EngineCoreOutputs& outputs);
  void Forget(RequestId request_id);
  void ForgetRequest(const EngineCoreRequest& request);
  DataParallelEngine& engine(int rank) { return engines_[static_cast<size_t>(rank)]; }

  std::vector<DataParallelEngine> engines_;
  std::unique_ptr<EngineMonitor> monitor_;  // refers to the engines, see ~DataParallelClient
  std::optional<DataParallelRouter> router_;
  int64_t block_size_;
  bool has_expendable_ = false;
  EngineCoreReadyInfo ready_;
  std::vector<int64_t> num_blocks_;    // [num_engines]; 0 for dead ones
  std::vector<SchedulerStats> stats_;  // [num_engines], the last ones that each engine has sent
  std::unordered_map<RequestId, Route> routes_;
  EngineCoreOutputs engine_outputs_;  // a buffer of TakeOutputs
  EventFd interrupt_;
  std::atomic<bool> interrupted_ = false;
  tokenizer::UniqueFd output_fd_;  // an epoll descriptor with those of the engines and of interrupt_
  bool is_shut_down_ = false;
  std::string warning_;
  std::set<std::string> given_warnings_;  // of the engines
  std::optional<std::string> death_cause_;
};

// Returns a DataParallelClient. REQUIRES: config.Finalize() has been called.
std::unique_ptr<EngineCoreClient> MakeDataParallelClient(const VllmConfig& config, const ExecutorFactory& factory);

}  // namespace vllm
