// DataParallelClient: runs data_parallel_size engines in this process and makes them look like one. Each engine has its
// own busy loop, scheduler, KV cache and cores. All engines share the weights. DataParallelRouter chooses the engine of
// each request, which has no effect on its tokens. If one engine dies, all of them are shut down, and the client is
// dead. Owned by LLMEngine; call members from the front-end thread only. See engine_core_client.h for the contracts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/config/errors.h"
#include "engine/core/event_fd.h"
#include "engine/core/thread_client.h"
#include "engine/data_parallel/data_parallel_monitor.h"
#include "engine/data_parallel/data_parallel_router.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {

class DataParallelClient final : public EngineCoreClient {
 public:
  // Loads the model on one engine after the other: those after the first use the weights of the first. Divides
  // config.cache.kv_cache_memory_bytes among the engines; all other limits hold for each engine. Throws what loading
  // throws, and ResourceError.
  DataParallelClient(const VllmConfig& config, const ExecutorFactory& factory);
  ~DataParallelClient() override;

  const EngineCoreReadyInfo& ready() const override { return ready_; }
  void AddRequest(EngineCoreRequestPtr request) override;
  void AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) override;
  bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) override;
  void Interrupt() override;
  int OutputFd() const override { return output_fd_.get(); }
  bool ResetPrefixCache() override;
  SchedulerStats GetStats() override;
  EngineMonitor* monitor() override { return monitor_.get(); }
  void Shutdown(ShutdownMode mode) override;

  const DataParallelRouter& router() const { return *router_; }

 private:
  // Where an unfinished request is, and the cost that the router knows.
  struct Route {
    int rank = 0;
    int64_t cost = 0;
  };

  void AddToReady(const EngineCoreReadyInfo& engine);
  void ThrowIfDead() const;
  // Marks the client as dead, and stops the other engines in the middle of their steps.
  void Die(int rank, const EngineDeadError& error);
  // Adds the outputs of all engines to `outputs`, without waiting.
  void TakeOutputs(EngineCoreOutputs& outputs);
  void Forget(RequestId request_id);

  std::vector<std::unique_ptr<ThreadClient>> engines_;  // [data_parallel_size]
  std::unique_ptr<DataParallelMonitor> monitor_;        // refers to the engines, see ~DataParallelClient
  std::optional<DataParallelRouter> router_;
  int64_t block_size_;
  EngineCoreReadyInfo ready_;
  std::vector<int64_t> num_blocks_;    // [data_parallel_size]
  std::vector<SchedulerStats> stats_;  // [data_parallel_size], the last ones that each engine has sent
  std::unordered_map<RequestId, Route> routes_;
  EngineCoreOutputs engine_outputs_;  // a buffer of TakeOutputs
  EventFd interrupt_;
  bool interrupted_ = false;
  tokenizer::UniqueFd output_fd_;  // an epoll descriptor with those of the engines and of interrupt_
  bool is_shut_down_ = false;
  std::optional<std::string> death_cause_;
};

// Returns a DataParallelClient. REQUIRES: config.Finalize() has been called.
std::unique_ptr<EngineCoreClient> MakeDataParallelClient(const VllmConfig& config, const ExecutorFactory& factory);

}  // namespace vllm
