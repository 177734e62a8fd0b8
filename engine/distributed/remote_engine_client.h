// RemoteEngineClient: the engine of another process of a distributed job, as rank 0 sees it. Its requests travel over
// the Transport, and its outputs arrive in a RemoteEngineInbox. Owned by DataParallelClient; call members from the
// front-end thread only. RemoteEngineInbox is shared with the Coordinator, which calls it on the transport's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/core/engine_core_client.h"
#include "engine/core/input_queue.h"
#include "engine/core/output_queue.h"
#include "engine/distributed/transport.h"

namespace vllm {

class RemoteEngineInbox {
 public:
  explicit RemoteEngineInbox(int64_t vocab_size) : vocab_size_(vocab_size) {}

  // Handles a message of the rank after its hello. Throws WireError.
  void OnMessage(std::string_view message);
  // The rank is gone, or its engine has failed. The first cause counts.
  void Die(const std::string& cause);

 private:
  friend class RemoteEngineClient;
  // Throws WireError if the front end could not process the outputs.
  void Check(const EngineCoreOutputs& outputs) const;

  const int64_t vocab_size_;
  OutputQueue outputs_;
  UtilityResult reset_result_;
  UtilityResult closed_;
  EngineCoreOutputs decoded_;  // a buffer of OnMessage
};

class RemoteEngineClient final : public EngineCoreClient {
 public:
  // Borrows `transport`.
  RemoteEngineClient(Transport& transport, int rank, const EngineCoreReadyInfo& ready,
                     std::shared_ptr<RemoteEngineInbox> inbox);
  ~RemoteEngineClient() override { RemoteEngineClient::Shutdown(ShutdownMode::kAbort); }

  const EngineCoreReadyInfo& ready() const override { return ready_; }
  // Never blocks.
  void AddRequest(EngineCoreRequestPtr request) override;
  void AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) override;
  bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) override;
  void Interrupt() override { inbox_->outputs_.Interrupt(); }
  int OutputFd() const override { return inbox_->outputs_.fd(); }
  bool ResetPrefixCache() override;
  // Returns the statistics of the last outputs that the rank has sent.
  SchedulerStats GetStats() override { return stats_; }
  // Always throws ResourceError: adapters cannot be sent to another process.
  void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) override;
  void Shutdown(ShutdownMode mode) override;

 private:
  [[noreturn]] void ThrowDead();

  Transport& transport_;
  const int rank_;
  const EngineCoreReadyInfo ready_;
  const std::shared_ptr<RemoteEngineInbox> inbox_;
  SchedulerStats stats_;
  bool is_shut_down_ = false;
};

}  // namespace vllm
