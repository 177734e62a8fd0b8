#include "engine/core/engine_core.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "engine/config/errors.h"
#include "engine/core/draft_model_proposer.h"
#include "engine/kv_cache/kv_cache_demand.h"
#include "engine/kv_offload/disk_kv_connector.h"
#include "engine/lora/lora_adapter.h"
#include "engine/sched/scheduler.h"
#include "engine/sched/scheduler_snapshot.h"
#include "engine/spec_decode/make_proposer.h"
#include "engine/spec_decode/speculator.h"
#include "engine/trace/trace_recorder.h"

namespace vllm {

namespace {

// If all requests wait for their KV to be loaded, a step waits this long for it. Messages to the engine wait as long.
constexpr std::chrono::milliseconds kMaxLoadWait{5};

}  // namespace

int64_t GetNumBlocks(const VllmConfig& config, int64_t memory_bytes, int64_t block_bytes,
                     const std::string& memory_bound) {
  const int64_t max_blocks =
      PeakBlocks(config.cache, config.model.max_model_len, MaxChunk(config.scheduler)) * config.scheduler.max_num_seqs;
  if (block_bytes == 0) return max_blocks;
  int64_t usable_bytes = memory_bytes;
  if (config.cache.kv_cache_memory_bytes) usable_bytes = std::min(usable_bytes, *config.cache.kv_cache_memory_bytes);
  const int64_t affordable = usable_bytes / block_bytes - 1;
  const auto num_groups = static_cast<int64_t>(config.cache.group_windows.size());
  const int64_t min_blocks = num_groups + config.cache.num_state_blocks;
  if (affordable < min_blocks) {
    std::string limit = std::to_string(memory_bytes) + " bytes available";
    if (!memory_bound.empty()) limit += " under " + memory_bound;
    if (usable_bytes < memory_bytes) {
      limit += ", limited to " + std::to_string(*config.cache.kv_cache_memory_bytes) + " by --kv-cache-memory";
      if (config.parallel.data_parallel_size > 1) limit += " divided by --data-parallel-size";
      if (config.parallel.num_local_processes > 1) limit += " divided among the ranks on this machine";
    }
    const std::string needed = std::to_string(min_blocks + 1);
    std::string blocks =
        num_groups == 1 ? "one block of "
                        : "one block for each of " + std::to_string(num_groups) + " KV-cache groups, with blocks of ";
    if (config.cache.num_state_blocks > 0) {
      blocks = std::to_string(config.cache.num_state_blocks) + " blocks for a recurrent state and " + blocks;
    }
    throw ResourceError("cannot allocate the KV cache: too little memory for " + blocks +
                        std::to_string(config.cache.block_size) + " tokens (with the null block, " + needed +
                        " blocks x " + std::to_string(block_bytes) +
                        " bytes = " + std::to_string((min_blocks + 1) * block_bytes) + " bytes; " + limit + ")");
  }
  return std::min(affordable, max_blocks);
}

EngineCore::EngineCore(const VllmConfig& config, const ExecutorFactory& factory, StepInterrupt* interrupt,
                       TraceRecorder* trace)
    : interrupt_(interrupt), trace_(trace) {
  const auto start = std::chrono::steady_clock::now();
  LoadedExecutor loaded = factory(config);
  executor_ = std::move(loaded.executor);
  ready_.load_report = std::move(loaded.report);
  if (config.speculative.enabled()) {
    if (loaded.proposer == nullptr) loaded.proposer = MakeProposer(config.speculative);
    // Before the KV cache is sized, so that the memory of the draft model counts.
    if (loaded.proposer == nullptr && config.draft != nullptr) {
      loaded.proposer = std::make_unique<DraftModelProposer>(*config.draft, factory);
    }
    speculator_ = std::make_unique<Speculator>(config, std::move(loaded.proposer));
  }
  VllmConfig sized = config;
  CacheConfig& cache = sized.cache;
  cache.group_windows = executor_->KVGroupWindows();
  cache.num_state_blocks = executor_->NumStateBlocks();
  if (cache.num_blocks_override) {
    cache.num_blocks = *cache.num_blocks_override;
  } else {
    const int64_t memory_bytes = executor_->DetermineAvailableMemory();
    cache.num_blocks = GetNumBlocks(sized, memory_bytes, executor_->PageSizeBytes(), executor_->memory_bound());
  }
  // Limit sequences to the length that fits into the whole pool if a sequence runs alone.
  ready_.max_model_len = std::min(config.model.max_model_len, MaxTokensThatFit(cache, MaxChunk(config.scheduler)));
  if (ready_.max_model_len < 1) {
    throw ConfigError("--num-kv-blocks: the model's KV-cache groups need at least " +
                      std::to_string(static_cast<int64_t>(cache.group_windows.size()) + cache.num_state_blocks) +
                      " blocks (the flag sets " + std::to_string(cache.num_blocks) + ")");
  }
  // Measure this before the cache is mapped, so that the address space of the cache is not counted twice.
  ready_.spare_memory_bytes = executor_->SpareMemory(cache.num_blocks);
  executor_->InitializeKVCache(cache.num_blocks);
  if (interrupt_ != nullptr) executor_->SetCancellation(&interrupt_->flag());
  ready_.num_blocks = cache.num_blocks;
  for (const auto& adapter : config.lora.adapters) lora_digests_.push_back(adapter->digest);
  scheduler_ = std::make_unique<Scheduler>(config.scheduler, cache, ready_.max_model_len);
  if (config.kv_disk_cache.enabled()) OpenKVDiskCache(config);
  if (trace_ != nullptr) trace_->Begin(config.scheduler, cache, ready_.max_model_len);
  ready_.load_time = std::chrono::steady_clock::now() - start;
}

EngineCore::~EngineCore() {
  if (trace_ == nullptr || scheduler_ == nullptr) return;
  if (step_failed_) {
    trace_->Flush();
  } else {
    trace_->End();
  }
}

void EngineCore::OpenKVDiskCache(const VllmConfig& config) {
  std::string& failure = ready_.kv_disk_cache_failure;
  failure = trace_ != nullptr ? "a trace could not be replayed without its contents"
                              : DiskKVConnector::WhyNot(config, *executor_);
  if (!failure.empty()) return;
  try {
    kv_connector_ = std::make_unique<DiskKVConnector>(config, *executor_);
    scheduler_->SetKVConnector(kv_connector_.get());
  } catch (const std::exception& error) {
    failure = error.what();
    ready_.kv_disk_cache_has_fault = true;
  }
}

bool EngineCore::HasAdapter(const EngineCoreRequest& request) const {
  if (request.lora_slot < 0) return request.lora_digest.empty();
  const auto slot = static_cast<size_t>(request.lora_slot);
  return slot < lora_digests_.size() && lora_digests_[slot] == request.lora_digest;
}

void EngineCore::AddRequest(EngineCoreRequestPtr request) {
  std::string reason;
  bool accepted = false;
  if (HasAdapter(*request)) {
    accepted = scheduler_->AddRequest(request, &reason);
  } else {
    reason = "lora: this engine does not have the adapter";
  }
  if (trace_ != nullptr) trace_->Add(*request, accepted);
  if (accepted) return;
  for (int64_t i = 0; i < NumSequences(*request); ++i) {
    rejected_.emplace_back(request->request_id + static_cast<RequestId>(i), reason);
  }
}

void EngineCore::AbortRequests(std::span<const RequestId> request_ids) {
  scheduler_->FinishRequests(request_ids, FinishReason::kAbort);
  if (trace_ != nullptr) trace_->Finish(request_ids, FinishReason::kAbort);
  std::erase_if(rejected_, [&](const auto& rejected) {
    return std::find(request_ids.begin(), request_ids.end(), rejected.first) != request_ids.end();
  });
}

bool EngineCore::HasUnfinishedRequests() const { return !rejected_.empty() || scheduler_->HasUnfinishedRequests(); }

bool EngineCore::HasRequests() const {
  return !rejected_.empty() || scheduler_->HasFinishedRequests() ||
         (scheduler_->HasUnfinishedRequests() && !scheduler_->IsHeld());
}

bool EngineCore::Step(EngineCoreOutputs& outputs) {
  outputs.Clear();
  step_failed_ = true;
  bool executed = false;
  if (scheduler_->HasUnfinishedRequests() || scheduler_->HasFinishedRequests()) {
    scheduler_->FinishLoads();
    const SchedulerOutput& scheduler_output = scheduler_->Schedule();
    if (trace_ != nullptr) {
      const BlockPool& pool = scheduler_->kv_cache().pool();
      trace_->Step(scheduler_output, pool.num_blocks() - pool.num_free_blocks());
    }
    // A step without tokens still tells the workers which requests to drop.
    executed = scheduler_output.total_num_scheduled_tokens > 0 || !scheduler_output.finished_req_ids.empty() ||
               !scheduler_output.preempted_req_ids.empty();
    if (executed) {
      Execute(scheduler_output, outputs);
    } else if (scheduler_->num_loading() > 0) {
      kv_connector_->WaitForLoad(kMaxLoadWait);
    } else if (scheduler_->HasUnfinishedRequests() && !scheduler_->IsHeld() && rejected_.empty()) {
      ThrowStuck();
    }
  }
  for (auto& [request_id, reason] : rejected_) {
    EngineCoreOutput& output = outputs.Add(request_id);
    output.finish_reason = FinishReason::kError;
    output.error = std::move(reason);
  }
  rejected_.clear();
  outputs.stats = scheduler_->MakeStats();
  if (trace_ != nullptr && !HasRequests()) trace_->Flush();
  step_failed_ = false;
  return executed;
}

void EngineCore::Execute(const SchedulerOutput& scheduler_output, EngineCoreOutputs& outputs) {
  if (interrupt_ != nullptr) {
    interrupt_->BeginStep(scheduler_output.num_scheduled_tokens, scheduler_output.has_interactive_request);
  }
  if (speculator_ != nullptr) speculator_->Finish(scheduler_output.finished_req_ids);
  bool cancelled = false;
  const auto start = std::chrono::steady_clock::now();
  try {
    scheduler_->UpdateFromOutput(executor_->ExecuteModel(scheduler_output), outputs);
    if (trace_ != nullptr) trace_->Update(outputs);
  } catch (const kernels::StepCancelled&) {
    scheduler_->RollBackStep();
    if (trace_ != nullptr) trace_->RollBack();
    cancelled = true;
  }
  if (interrupt_ != nullptr) interrupt_->EndStep(cancelled);
  const Seconds time = std::chrono::steady_clock::now() - start;
  if (speculator_ != nullptr && !cancelled) {
    speculator_->AfterStep(scheduler_output, outputs, time.count(), *scheduler_);
    if (trace_ != nullptr) trace_->Drafts(scheduler_->running());
  }
  if (scheduler_output.total_num_scheduled_tokens == 0) return;
  last_step_time_ = time;
  step_time_ += time;
  if (kv_connector_ != nullptr && !cancelled) {
    kv_connector_->RecordStep(scheduler_output.total_num_scheduled_tokens, time);
  }
  num_executed_steps_ += cancelled ? 0 : 1;
}

void EngineCore::ThrowStuck() const {
  const KVCacheManager& kv_cache = scheduler_->kv_cache();
  throw std::logic_error("scheduler: no request can be scheduled (" + std::to_string(scheduler_->num_running()) +
                         " running, " + std::to_string(scheduler_->num_waiting()) + " waiting, " +
                         std::to_string(kv_cache.pool().num_free_blocks()) + " of " +
                         std::to_string(kv_cache.num_blocks()) + " KV blocks free)");
}

bool EngineCore::ResetPrefixCache() {
  const bool ok = scheduler_->ResetPrefixCache();
  if (trace_ != nullptr) trace_->ResetPrefixCache(ok);
  return ok;
}

void EngineCore::AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) {
  lora_digests_.resize(slot);
  executor_->AddLoRA(slot, adapter);
  lora_digests_.push_back(adapter->digest);
}

EngineSnapshot EngineCore::MakeSnapshot() const {
  EngineSnapshot snapshot;
  FillSnapshot(*scheduler_, snapshot);
  snapshot.num_executed_steps = num_executed_steps_;
  snapshot.step_time = step_time_;
  snapshot.last_step_time = last_step_time_;
  const auto rank_times = executor_->RankTimes();
  snapshot.rank_times.assign(rank_times.begin(), rank_times.end());
  snapshot.cost = std::chrono::steady_clock::now() - snapshot.time;
  return snapshot;
}

void EngineCore::SetAdmissionPaused(bool paused) {
  if (scheduler_->admission_paused() == paused) return;
  scheduler_->SetAdmissionPaused(paused);
  if (trace_ != nullptr) trace_->SetAdmissionPaused(paused);
}

void EngineCore::AbortWithOutput(std::span<const RequestId> request_ids, EngineCoreOutputs& outputs) {
  for (const RequestId id : request_ids) scheduler_->AbortWithOutput(id, outputs);
  if (trace_ != nullptr) trace_->Finish(request_ids, FinishReason::kAbort);
}

std::string EngineCore::TakeWarning() {
  return kv_connector_ == nullptr ? std::string() : kv_connector_->TakeWarning();
}

SchedulerStats EngineCore::GetStats() const { return scheduler_->MakeStats(); }

}  // namespace vllm
