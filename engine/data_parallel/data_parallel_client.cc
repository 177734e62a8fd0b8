#include "engine/data_parallel/data_parallel_client.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "engine/config/errors.h"
#include "engine/data_parallel/data_parallel_monitor.h"
#include "engine/data_parallel/merge_engines.h"
#include "engine/model_loader/packed_cache/matrix_store.h"

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

DataParallelEngines MakeLocalEngines(const VllmConfig& config, const ExecutorFactory& factory) {
  const int64_t num_engines = config.parallel.data_parallel_size;
  VllmConfig engine_config = config;
  engine_config.load.matrices = std::make_shared<MatrixStore>(config.parallel.tensor_parallel_size);
  if (config.cache.kv_cache_memory_bytes) {
    engine_config.cache.kv_cache_memory_bytes = *config.cache.kv_cache_memory_bytes / num_engines;
  }
  DataParallelEngines engines;
  std::vector<EngineCoreMonitor*> monitors;
  for (int64_t rank = 0; rank < num_engines; ++rank) {
    engine_config.parallel.data_parallel_rank = rank;
    auto client = std::make_unique<ThreadClient>(engine_config, factory);
    monitors.push_back(client->monitor());
    engines.engines.push_back(
        {.client = std::move(client),
         .name = "data-parallel engine " + std::to_string(rank) + " of " + std::to_string(num_engines)});
    // The other engines share the weights, so loading is almost done.
    engine_config.load.progress = nullptr;
  }
  engines.monitor = std::make_unique<DataParallelMonitor>(std::move(monitors));
  return engines;
}

}  // namespace

DataParallelClient::DataParallelClient(const VllmConfig& config, const ExecutorFactory& factory)
    : DataParallelClient(config, MakeLocalEngines(config, factory)) {}

DataParallelClient::DataParallelClient(const VllmConfig& config, DataParallelEngines engines)
    : engines_(std::move(engines.engines)),
      monitor_(std::move(engines.monitor)),
      block_size_(config.cache.block_size),
      output_fd_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!output_fd_.valid()) {
    throw ResourceError(std::string("cannot create an epoll descriptor: ") + std::strerror(errno));
  }
  for (const DataParallelEngine& engine : engines_) {
    AddToReady(engine.client->ready());
    has_expendable_ |= engine.expendable;
    Watch(output_fd_.get(), engine.client->OutputFd());
  }
  Watch(output_fd_.get(), interrupt_.fd());
  stats_.resize(engines_.size());
  DataParallelRouter::Options options;
  options.num_ranks = static_cast<int>(engines_.size());
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
  DataParallelEngine& dead = engine(rank);
  if (death_cause_ || dead.is_dead) return;
  dead.is_dead = true;
  // The descriptor of a dead engine stays readable.
  epoll_ctl(output_fd_.get(), EPOLL_CTL_DEL, dead.client->OutputFd(), nullptr);
  if (dead.expendable) return Reroute(rank, error);
  death_cause_ = dead.name + ": " + error.what();
  interrupt_.Set();
  for (const DataParallelEngine& other : engines_) other.client->Shutdown(ShutdownMode::kAbort);
}

void DataParallelClient::Reroute(int rank, const EngineDeadError& error) {
  const auto index = static_cast<size_t>(rank);
  router_->Remove(rank);
  num_blocks_[index] = 0;
  stats_[index].num_running_reqs = 0;
  stats_[index].num_waiting_reqs = 0;
  std::vector<std::pair<RequestId, Route>> lost;
  for (auto& [id, route] : routes_) {
    if (route.rank == rank) lost.emplace_back(id, std::move(route));
  }
  for (const auto& [id, route] : lost) routes_.erase(id);
  // In the order in which they arrived.
  std::sort(lost.begin(), lost.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t num_sequences = lost.size();
  std::erase_if(lost, [](const auto& entry) { return entry.second.request == nullptr; });
  warning_ += (warning_.empty() ? "" : "; ") + engine(rank).name + " has failed (" + error.what() + "); its " +
              std::to_string(num_sequences) + " unfinished sequences continue elsewhere";
  for (auto& [id, route] : lost) Send(std::move(route.request), std::move(route.token_ids));
}

void DataParallelClient::AddRequest(EngineCoreRequestPtr request) {
  ThrowIfDead();
  if (is_shut_down_) throw EngineDeadError("the engine was shut down");
  Send(std::move(request), {});
  ThrowIfDead();
}

void DataParallelClient::Send(EngineCoreRequestPtr request, std::vector<int32_t> token_ids) {
  if (death_cause_) return;
  const int64_t cost = CostOf(*request);
  const int rank = router_->Route(PrefixHashes(request->prompt_token_ids, BlockExtraKeys(*request), block_size_), cost);
  const EngineCoreRequestPtr original = request;
  EngineCoreRequestPtr sent = request;
  if (!token_ids.empty()) {
    auto continued = std::make_shared<EngineCoreRequest>(*request);
    continued->prior_output_token_ids.insert(continued->prior_output_token_ids.end(), token_ids.begin(),
                                             token_ids.end());
    // These came with the first token.
    continued->sampling_params.prompt_logprobs.reset();
    sent = std::move(continued);
  }
  for (int64_t i = 1; i < NumSequences(*request); ++i) {
    routes_[request->request_id + static_cast<RequestId>(i)] = {.rank = rank};
  }
  routes_[original->request_id] = {rank, cost, has_expendable_ ? std::move(request) : nullptr, std::move(token_ids)};
  try {
    engine(rank).client->AddRequest(std::move(sent));
  } catch (const EngineDeadError& error) {
    if (!engine(rank).expendable) ForgetRequest(*original);
    Die(rank, error);
  }
}

void DataParallelClient::ForgetRequest(const EngineCoreRequest& request) {
  for (int64_t i = 0; i < NumSequences(request); ++i) Forget(request.request_id + static_cast<RequestId>(i));
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
    if (!ids_of_rank[rank].empty()) engines_[rank].client->AbortRequests(ids_of_rank[rank], urgency);
  }
}

void DataParallelClient::TakeOutputs(EngineCoreOutputs& outputs) {
  for (int rank = 0; rank < static_cast<int>(engines_.size()); ++rank) {
    if (engine(rank).is_dead) continue;
    try {
      engine(rank).client->GetOutputs(engine_outputs_, std::chrono::milliseconds(0));
    } catch (const EngineDeadError& error) {
      Die(rank, error);
      continue;
    }
    stats_[static_cast<size_t>(rank)] = engine_outputs_.stats;
    AddOutputs(rank, outputs);
  }
}

void DataParallelClient::AddOutputs(int rank, EngineCoreOutputs& outputs) {
  for (size_t i = 0; i < engine_outputs_.size(); ++i) {
    EngineCoreOutput& output = engine_outputs_[i];
    const auto route = routes_.find(output.request_id);
    if (route == routes_.end() || route->second.rank != rank) continue;
    if (output.finish_reason != FinishReason::kNone) {
      ++engine(rank).num_finished;
      Forget(output.request_id);
    } else if (has_expendable_) {
      std::vector<int32_t>& token_ids = route->second.token_ids;
      token_ids.insert(token_ids.end(), output.new_token_ids.begin(), output.new_token_ids.end());
    }
    // Swaps the buffers, so that both sides keep their capacity.
    std::swap(outputs.Add(output.request_id), output);
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
  // In this order, because GetOutputs resets them in the other one: a descriptor that stays readable without the flag
  // would make it spin.
  interrupt_.Set();
  interrupted_ = true;
}

bool DataParallelClient::ResetPrefixCache() {
  ThrowIfDead();
  bool ok = true;
  for (int rank = 0; rank < static_cast<int>(engines_.size()); ++rank) {
    if (engine(rank).is_dead) continue;
    try {
      ok = engine(rank).client->ResetPrefixCache() && ok;
    } catch (const EngineDeadError& error) {
      Die(rank, error);
      ThrowIfDead();
    }
  }
  return ok;
}

std::string DataParallelClient::TakeWarning() {
  if (!warning_.empty()) return std::exchange(warning_, std::string());
  for (const DataParallelEngine& engine : engines_) {
    // Engines that share a directory have the same warnings.
    std::string warning = engine.client->TakeWarning();
    if (!warning.empty() && given_warnings_.insert(warning).second) return warning;
  }
  return {};
}

SchedulerStats DataParallelClient::GetStats() {
  ThrowIfDead();
  for (int rank = 0; rank < static_cast<int>(engines_.size()); ++rank) {
    if (engine(rank).is_dead) continue;
    try {
      stats_[static_cast<size_t>(rank)] = engine(rank).client->GetStats();
    } catch (const EngineDeadError& error) {
      Die(rank, error);
      ThrowIfDead();
    }
  }
  return SumStats(stats_, num_blocks_);
}

void DataParallelClient::AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) {
  ThrowIfDead();
  for (int rank = 0; rank < static_cast<int>(engines_.size()); ++rank) {
    if (engine(rank).is_dead) continue;
    try {
      engine(rank).client->AddLoRA(slot, adapter);
    } catch (const EngineDeadError& error) {
      Die(rank, error);
      ThrowIfDead();
    }
  }
}

void DataParallelClient::Shutdown(ShutdownMode mode) {
  is_shut_down_ = true;
  // While one engine drains, the others run.
  for (const DataParallelEngine& engine : engines_) engine.client->Shutdown(mode);
}

std::unique_ptr<EngineCoreClient> MakeDataParallelClient(const VllmConfig& config, const ExecutorFactory& factory) {
  return std::make_unique<DataParallelClient>(config, factory);
}

}  // namespace vllm
