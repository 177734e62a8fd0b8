#include "engine/data_parallel/data_parallel_client.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "engine/config/errors.h"
#include "engine/data_parallel/merge_engines.h"
#include "engine/model_loader/shared_weights.h"

namespace vllm {
namespace {

// How many output tokens a request is expected to have. max_tokens is often as large as the context, and most answers
// are much shorter.
constexpr int64_t kExpectedOutputTokens = 256;

int64_t CostOf(const EngineCoreRequest& request) {
  const int64_t max_tokens = request.sampling_params.max_tokens.value_or(kExpectedOutputTokens);
  return static_cast<int64_t>(request.prompt_token_ids.size()) + std::min(max_tokens, kExpectedOutputTokens);
}

void Watch(int epoll_fd, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0) return;
  throw ResourceError(std::string("cannot watch the outputs of the engines: ") + std::strerror(errno));
}

}  // namespace

DataParallelClient::DataParallelClient(const VllmConfig& config, const ExecutorFactory& factory)
    : block_size_(config.cache.block_size), output_fd_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!output_fd_.valid()) {
    throw ResourceError(std::string("cannot create an epoll descriptor: ") + std::strerror(errno));
  }
  const int64_t num_engines = config.parallel.data_parallel_size;
  VllmConfig engine_config = config;
  engine_config.load.shared_weights = std::make_shared<SharedWeights>(config.parallel.tensor_parallel_size);
  if (config.cache.kv_cache_memory_bytes) {
    engine_config.cache.kv_cache_memory_bytes = *config.cache.kv_cache_memory_bytes / num_engines;
  }
  std::vector<EngineCoreMonitor*> monitors;
  for (int64_t rank = 0; rank < num_engines; ++rank) {
    engine_config.parallel.data_parallel_rank = rank;
    engines_.push_back(std::make_unique<ThreadClient>(engine_config, factory));
    ThreadClient& engine = *engines_.back();
    AddToReady(engine.ready());
    monitors.push_back(engine.monitor());
    Watch(output_fd_.get(), engine.OutputFd());
    // The other engines share the weights, so loading is almost done.
    engine_config.load.progress = nullptr;
  }
  Watch(output_fd_.get(), interrupt_.fd());
  monitor_ = std::make_unique<DataParallelMonitor>(std::move(monitors));
  stats_.resize(engines_.size());
  DataParallelRouter::Options options;
  options.num_ranks = static_cast<int>(num_engines);
  options.tokens_per_hash = block_size_;
  // An engine that reads no prefixes from its cache gains nothing from requests with the same one.
  if (!config.cache.enable_prefix_caching) options.max_imbalance = 0;
  router_.emplace(options);
}

// Stops the threads first, because they may call the monitor.
DataParallelClient::~DataParallelClient() { DataParallelClient::Shutdown(ShutdownMode::kAbort); }

void DataParallelClient::AddToReady(const EngineCoreReadyInfo& engine) {
  num_blocks_.push_back(engine.num_blocks);
  if (num_blocks_.size() == 1) {
    ready_ = engine;
    return;
  }
  ready_.num_blocks += engine.num_blocks;
  // A request must end at the same length on every engine.
  ready_.max_model_len = std::min(ready_.max_model_len, engine.max_model_len);
  ready_.spare_memory_bytes = std::min(ready_.spare_memory_bytes, engine.spare_memory_bytes);
  ready_.load_time += engine.load_time;
}

void DataParallelClient::ThrowIfDead() const {
  if (death_cause_) throw EngineDeadError(*death_cause_);
}

void DataParallelClient::Die(int rank, const EngineDeadError& error) {
  if (death_cause_) return;
  death_cause_ =
      "data-parallel engine " + std::to_string(rank) + " of " + std::to_string(engines_.size()) + ": " + error.what();
  for (const std::unique_ptr<ThreadClient>& engine : engines_) engine->Shutdown(ShutdownMode::kAbort);
}

void DataParallelClient::AddRequest(EngineCoreRequestPtr request) {
  ThrowIfDead();
  if (is_shut_down_) throw EngineDeadError("the engine was shut down");
  const int64_t cost = CostOf(*request);
  const int rank = router_->Route(PrefixHashes(request->prompt_token_ids, request->cache_salt, block_size_), cost);
  const RequestId request_id = request->request_id;
  routes_[request_id] = {rank, cost};
  try {
    engines_[static_cast<size_t>(rank)]->AddRequest(std::move(request));
  } catch (const EngineDeadError& error) {
    Forget(request_id);
    Die(rank, error);
    ThrowIfDead();
  }
}

void DataParallelClient::Forget(RequestId request_id) {
  const auto found = routes_.find(request_id);
  if (found == routes_.end()) return;
  router_->Finish(found->second.rank, found->second.cost);
  routes_.erase(found);
}

void DataParallelClient::AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) {
  std::vector<std::vector<RequestId>> ids_of_rank(engines_.size());
  for (const RequestId id : request_ids) {
    const auto found = routes_.find(id);
    if (found == routes_.end()) continue;
    ids_of_rank[static_cast<size_t>(found->second.rank)].push_back(id);
    Forget(id);
  }
  for (size_t rank = 0; rank < engines_.size(); ++rank) {
    if (!ids_of_rank[rank].empty()) engines_[rank]->AbortRequests(ids_of_rank[rank], urgency);
  }
}

void DataParallelClient::TakeOutputs(EngineCoreOutputs& outputs) {
  for (size_t rank = 0; rank < engines_.size(); ++rank) {
    try {
      engines_[rank]->GetOutputs(engine_outputs_, std::chrono::milliseconds(0));
    } catch (const EngineDeadError& error) {
      Die(static_cast<int>(rank), error);
      continue;
    }
    stats_[rank] = engine_outputs_.stats;
    for (size_t i = 0; i < engine_outputs_.size(); ++i) {
      EngineCoreOutput& output = engine_outputs_[i];
      if (output.finish_reason != FinishReason::kNone) Forget(output.request_id);
      // Swaps the buffers, so that both sides keep their capacity.
      std::swap(outputs.Add(output.request_id), output);
    }
  }
}

bool DataParallelClient::GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  outputs.Clear();
  while (true) {
    // Also after a failure, for the outputs from before it.
    TakeOutputs(outputs);
    const auto now = std::chrono::steady_clock::now();
    if (!outputs.empty() || death_cause_ || interrupted_ || is_shut_down_ || now >= deadline) break;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
    pollfd fd = {output_fd_.get(), POLLIN, 0};
    poll(&fd, 1, static_cast<int>(std::min<int64_t>(wait.count(), 1'000'000)));
  }
  interrupted_ = false;
  // After a failure the descriptor stays readable, because every further call has outputs or an error to return.
  if (!death_cause_) interrupt_.Reset();
  outputs.stats = SumStats(stats_, num_blocks_);
  if (outputs.empty()) ThrowIfDead();
  return !outputs.empty();
}

void DataParallelClient::Interrupt() {
  interrupted_ = true;
  interrupt_.Set();
}

bool DataParallelClient::ResetPrefixCache() {
  ThrowIfDead();
  bool ok = true;
  for (size_t rank = 0; rank < engines_.size(); ++rank) {
    try {
      ok = engines_[rank]->ResetPrefixCache() && ok;
    } catch (const EngineDeadError& error) {
      Die(static_cast<int>(rank), error);
      ThrowIfDead();
    }
  }
  return ok;
}

SchedulerStats DataParallelClient::GetStats() {
  ThrowIfDead();
  for (size_t rank = 0; rank < engines_.size(); ++rank) {
    try {
      stats_[rank] = engines_[rank]->GetStats();
    } catch (const EngineDeadError& error) {
      Die(static_cast<int>(rank), error);
      ThrowIfDead();
    }
  }
  return SumStats(stats_, num_blocks_);
}

void DataParallelClient::Shutdown(ShutdownMode mode) {
  is_shut_down_ = true;
  // While one engine drains, the others run.
  for (const std::unique_ptr<ThreadClient>& engine : engines_) engine->Shutdown(mode);
}

std::unique_ptr<EngineCoreClient> MakeDataParallelClient(const VllmConfig& config, const ExecutorFactory& factory) {
  return std::make_unique<DataParallelClient>(config, factory);
}

}  // namespace vllm
