// InprocClient: steps an EngineCore in the caller's thread. For tests and benchmarks. Owned by LLMEngine or a test;
// call members from one thread only. See engine_core_client.h for the contracts.
#pragma once

#include <optional>
#include <string>

#include "engine/core/engine_core.h"
#include "engine/core/engine_core_client.h"

namespace vllm {

class InprocClient final : public EngineCoreClient {
 public:
  InprocClient(const VllmConfig& config, const ExecutorFactory& factory);

  const EngineCoreReadyInfo& ready() const override { return ready_; }
  void AddRequest(EngineCoreRequestPtr request) override;
  void AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) override;
  bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) override;
  void Interrupt() override {}
  int OutputFd() const override { return -1; }
  bool ResetPrefixCache() override;
  SchedulerStats GetStats() override;
  void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) override;
  void Shutdown(ShutdownMode mode) override;

  // For tests; null after Shutdown.
  const EngineCore* engine_core() const { return engine_core_.get(); }

 private:
  void ThrowIfDead() const;
  // Runs one step. If the step throws, records the cause of death and throws EngineDeadError.
  void Step(EngineCoreOutputs& outputs);

  EngineCoreReadyInfo ready_;
  std::unique_ptr<EngineCore> engine_core_;
  std::optional<std::string> death_cause_;
  EngineCoreOutputs drained_;  // outputs of a draining shutdown, for the next GetOutputs
};

}  // namespace vllm
