#include "engine/core/inproc_client.h"

#include <exception>
#include <new>
#include <utility>

#include "engine/config/errors.h"
#include "engine/core/output_queue.h"

namespace vllm {

InprocClient::InprocClient(const VllmConfig& config, const ExecutorFactory& factory)
    : engine_core_(std::make_unique<EngineCore>(config, factory)) {
  ready_ = engine_core_->ready();
}

void InprocClient::ThrowIfDead() const {
  if (death_cause_) throw EngineDeadError(*death_cause_);
  if (!engine_core_) throw EngineDeadError("the engine was shut down");
}

void InprocClient::AddRequest(EngineCoreRequestPtr request) {
  ThrowIfDead();
  engine_core_->AddRequest(std::move(request));
}

void InprocClient::AbortRequests(std::span<const RequestId> request_ids, AbortUrgency /*urgency*/) {
  if (engine_core_ && !death_cause_) engine_core_->AbortRequests(request_ids);
}

void InprocClient::Step(EngineCoreOutputs& outputs) {
  try {
    engine_core_->Step(outputs);
  } catch (const std::bad_alloc&) {
    death_cause_ = kOutOfMemory;
  } catch (const std::exception& error) {
    death_cause_ = error.what();
  } catch (...) {
    death_cause_ = "unknown exception in the engine";
  }
  ThrowIfDead();
}

bool InprocClient::GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds /*timeout*/) {
  outputs.Clear();
  if (!engine_core_) {
    std::swap(outputs, drained_);
    drained_.Clear();
    if (!outputs.empty() || !death_cause_) return !outputs.empty();
  }
  ThrowIfDead();
  if (!engine_core_->HasRequests()) return false;
  Step(outputs);
  return !outputs.empty();
}

bool InprocClient::ResetPrefixCache() {
  ThrowIfDead();
  return engine_core_->ResetPrefixCache();
}

SchedulerStats InprocClient::GetStats() {
  ThrowIfDead();
  return engine_core_->GetStats();
}

void InprocClient::AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) {
  ThrowIfDead();
  engine_core_->AddLoRA(slot, adapter);
}

void InprocClient::Shutdown(ShutdownMode mode) {
  if (!engine_core_) return;
  if (mode == ShutdownMode::kDrain && !death_cause_) {
    OutputQueue merged;
    EngineCoreOutputs step;
    try {
      while (engine_core_->HasUnfinishedRequests()) {
        Step(step);
        merged.Publish(step);
      }
    } catch (const EngineDeadError&) {
      // GetOutputs reports the failure after it has returned the outputs of the earlier steps.
    }
    merged.Take(drained_, std::chrono::steady_clock::now());
  }
  engine_core_.reset();
}

std::unique_ptr<EngineCoreClient> MakeInprocClient(const VllmConfig& config, const ExecutorFactory& factory) {
  return std::make_unique<InprocClient>(config, factory);
}

}  // namespace vllm
