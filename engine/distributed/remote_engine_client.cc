#include "engine/distributed/remote_engine_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/distributed/wire.h"
#include "engine/distributed/wire_archive.h"

namespace vllm {

void RemoteEngineInbox::Check(const EngineCoreOutputs& outputs) const {
  const auto check_ids = [this](const std::vector<int32_t>& ids) {
    const bool ok = std::all_of(ids.begin(), ids.end(), [this](int32_t id) { return id >= 0 && id < vocab_size_; });
    if (!ok) throw WireError("a token id is outside the vocabulary");
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const EngineCoreOutput& output = outputs[i];
    check_ids(output.new_token_ids);
    check_ids(output.new_logprobs.token_ids);
    check_ids(output.prompt_logprobs.token_ids);
    if (!output.new_logprobs.empty() && output.new_logprobs.num_positions() != output.new_token_ids.size()) {
      throw WireError("logprobs of other tokens");
    }
  }
}

void RemoteEngineInbox::OnMessage(std::string_view message) {
  switch (TypeOf(message)) {
    case MessageType::kOutputs:
      DecodeOutputs(message, std::chrono::steady_clock::now(), decoded_);
      Check(decoded_);
      outputs_.Publish(decoded_);
      return;
    case MessageType::kDied:
      Die(Escape(DecodeDied(message), 1000));
      return;
    case MessageType::kClosed: {
      outputs_.Close();
      closed_.Set({});
      return;
    }
    case MessageType::kResetDone: {
      UtilityResult::Result result;
      result.ok = DecodeFlag(message);
      reset_result_.Set(result);
      return;
    }
    default:
      throw WireError("its type does not belong here");
  }
}

void RemoteEngineInbox::Die(const std::string& cause) {
  outputs_.Die(cause);
  reset_result_.Abandon();
  closed_.Abandon();
}

RemoteEngineClient::RemoteEngineClient(Transport& transport, int rank, const EngineCoreReadyInfo& ready,
                                       std::shared_ptr<RemoteEngineInbox> inbox)
    : transport_(transport), rank_(rank), ready_(ready), inbox_(std::move(inbox)) {}

void RemoteEngineClient::ThrowDead() {
  throw EngineDeadError(inbox_->outputs_.death_cause().value_or("the engine was shut down"));
}

void RemoteEngineClient::AddRequest(EngineCoreRequestPtr request) {
  if (is_shut_down_ || inbox_->outputs_.death_cause()) ThrowDead();
  transport_.Send(rank_, EncodeAdd(*request));
}

void RemoteEngineClient::AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) {
  transport_.Send(rank_, EncodeAbort(request_ids, urgency));
}

bool RemoteEngineClient::GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) {
  const bool has_outputs = inbox_->outputs_.Take(outputs, std::chrono::steady_clock::now() + timeout);
  stats_ = outputs.stats;
  return has_outputs;
}

bool RemoteEngineClient::ResetPrefixCache() {
  inbox_->reset_result_.Reset();
  if (is_shut_down_ || inbox_->outputs_.death_cause()) ThrowDead();
  transport_.Send(rank_, EncodeEmpty(MessageType::kReset));
  UtilityResult::Result result;
  if (!inbox_->reset_result_.Wait(result)) ThrowDead();
  return result.ok;
}

void RemoteEngineClient::AddLoRA(size_t /*slot*/, const std::shared_ptr<const LoRAAdapter>& /*adapter*/) {
  throw ResourceError("lora: a job of several processes cannot load adapters while it runs");
}

void RemoteEngineClient::Shutdown(ShutdownMode mode) {
  if (std::exchange(is_shut_down_, true)) return;
  transport_.Send(rank_, EncodeShutdown({mode, transport_.IsBroken()}));
  if (mode == ShutdownMode::kAbort || inbox_->outputs_.death_cause()) return;
  UtilityResult::Result result;
  inbox_->closed_.Wait(result);
}

}  // namespace vllm
