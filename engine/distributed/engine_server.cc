#include "engine/distributed/engine_server.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/config/errors.h"
#include "engine/core/engine_monitor.h"
#include "engine/distributed/wire.h"
#include "engine/distributed/wire_archive.h"

namespace vllm {
namespace {

// How often changes of the statistics are looked for while the engine has no outputs.
constexpr std::chrono::milliseconds kStatsInterval{100};

}  // namespace

EngineServer::EngineServer(RankConnection& connection, EngineCoreClient& engine, const VllmConfig& config,
                           const tokenizer::Tokenizer* tokenizer,
                           std::shared_ptr<const ReasoningFormat> reasoning_format)
    : connection_(connection),
      engine_(engine),
      vocab_size_(config.model.vocab_size),
      grammar_compiler_(tokenizer, config.model.vocab_size, config.grammar_cache_bytes),
      reasoning_format_(std::move(reasoning_format)) {
  grammar_compiler_.SetNotify([this] { engine_.Interrupt(); });
}

void EngineServer::Serve(HelloMessage hello) {
  const EngineCoreReadyInfo& ready = engine_.ready();
  hello.num_blocks = ready.num_blocks;
  hello.max_model_len = ready.max_model_len;
  hello.spare_memory_bytes = ready.spare_memory_bytes;
  hello.load_seconds = ready.load_time.count();
  connection_.StartServing();
  connection_.Send(EncodeHello(hello));
  while (true) {
    messages_.clear();
    connection_.TakeMessages(messages_);
    for (const std::string& message : messages_) {
      if (!Handle(message)) return;
    }
    if (!is_dead_ && std::chrono::steady_clock::now() >= last_send_ + kSendInterval) {
      try {
        SendOutputs();
      } catch (const EngineDeadError& error) {
        Die(error.what());
      }
    }
    // After SendOutputs, which resets the signal of the compiler.
    ReleaseCompiled();
    Wait();
  }
}

void EngineServer::Wait() const {
  const auto now = std::chrono::steady_clock::now();
  const bool may_send = now >= last_send_ + kSendInterval;
  const auto timeout =
      may_send ? kStatsInterval : std::chrono::ceil<std::chrono::milliseconds>(last_send_ + kSendInterval - now);
  std::array<pollfd, 2> fds = {
      {{connection_.MessageFd(), POLLIN, 0}, {may_send && !is_dead_ ? engine_.OutputFd() : -1, POLLIN, 0}}};
  poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
}

bool EngineServer::Handle(std::string_view message) {
  const MessageType type = TypeOf(message);
  if (type == MessageType::kShutdown) {
    const ShutdownMode mode = DecodeShutdown(message).mode;
    if (!is_dead_ && mode == ShutdownMode::kDrain) ReleaseAll();
    engine_.Shutdown(mode);
    if (!is_dead_ && mode == ShutdownMode::kDrain) SendOutputs();
    connection_.Send(EncodeEmpty(MessageType::kClosed));
    return false;
  }
  if (is_dead_) return true;
  switch (type) {
    case MessageType::kAdd:
      Add(message);
      return true;
    case MessageType::kAbort: {
      const AbortMessage abort = DecodeAbort(message);
      for (const RequestId id : abort.request_ids) Unhold(id);
      engine_.AbortRequests(abort.request_ids, abort.urgency);
      return true;
    }
    case MessageType::kAbortWithOutput: {
      const RequestId id = DecodeAbortWithOutput(message);
      if (Unhold(id)) {
        End(id, FinishReason::kAbort, "");
      } else if (EngineMonitor* monitor = engine_.monitor()) {
        monitor->AbortRequest(id);
      }
      return true;
    }
    case MessageType::kPause:
      if (EngineMonitor* monitor = engine_.monitor()) monitor->SetAdmissionPaused(DecodeFlag(message));
      return true;
    case MessageType::kReset:
      try {
        connection_.Send(EncodeFlag(MessageType::kResetDone, engine_.ResetPrefixCache()));
      } catch (const EngineDeadError& error) {
        Die(error.what());
      }
      return true;
    default:
      throw WireError("its type does not belong here");
  }
}

void EngineServer::Check(const EngineCoreRequest& request) const {
  const auto check_ids = [this](const char* field, const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocab_size_) {
        throw RequestError(std::string(field) + ": token id outside the vocabulary (" + std::to_string(id) + ")");
      }
    }
  };
  const SamplingParams& params = request.sampling_params;
  if (request.prompt_token_ids.empty()) throw RequestError("prompt: must have at least one token");
  if (!params.max_tokens || !params.seed) throw RequestError("max_tokens and seed: must be set by rank 0");
  check_ids("prompt", request.prompt_token_ids);
  check_ids("prior_output_token_ids", request.prior_output_token_ids);
  check_ids("stop_token_ids", params.stop_token_ids);
  if (params.allowed_token_ids) check_ids("allowed_token_ids", *params.allowed_token_ids);
  for (const std::vector<int32_t>& word : params.bad_words_token_ids) check_ids("bad_words", word);
  for (const auto& [id, bias] : params.logit_bias) check_ids("logit_bias", {id});
  if (params.eos_token_id) check_ids("eos_token_id", {*params.eos_token_id});
}

void EngineServer::Add(std::string_view message) {
  AddMessage add = DecodeAdd(message, std::chrono::steady_clock::now());
  EngineCoreRequest& request = *add.request;
  try {
    Check(request);
    if (add.has_reasoning_format) {
      if (reasoning_format_ == nullptr) throw RequestError("thinking: this rank knows no format for the model");
      request.reasoning_format = reasoning_format_;
    }
  } catch (const RequestError& error) {
    for (int64_t i = 0; i < NumSequences(request); ++i) {
      Reject(request.request_id + static_cast<RequestId>(i), error.what());
    }
    return;
  }
  HeldRequest held;
  const auto& constraint = request.sampling_params.structured_outputs;
  if (constraint) held.grammar = grammar_compiler_.Compile(*constraint);
  held.request = std::move(add.request);
  if (held.grammar != nullptr && !held.grammar->is_done()) {
    held_requests_.push_back(std::move(held));
  } else {
    Release(std::move(held));
  }
}

void EngineServer::Release(HeldRequest held) {
  if (held.grammar != nullptr) {
    held.request->grammar = held.grammar->grammar();
    if (held.request->grammar == nullptr) return Reject(held.request->request_id, held.grammar->error());
  }
  try {
    engine_.AddRequest(std::move(held.request));
  } catch (const EngineDeadError& error) {
    Die(error.what());
  }
}

void EngineServer::ReleaseCompiled() {
  for (auto it = held_requests_.begin(); !is_dead_ && it != held_requests_.end();) {
    if (!it->grammar->is_done()) {
      ++it;
      continue;
    }
    Release(std::move(*it));
    it = held_requests_.erase(it);
  }
  if (is_dead_) held_requests_.clear();
  grammar_compiler_.Trim();
}

void EngineServer::ReleaseAll() {
  for (const HeldRequest& held : held_requests_) grammar_compiler_.Wait(*held.grammar);
  ReleaseCompiled();
}

bool EngineServer::Unhold(RequestId request_id) {
  return std::erase_if(held_requests_,
                       [&](const HeldRequest& held) { return held.request->request_id == request_id; }) > 0;
}

void EngineServer::End(RequestId request_id, FinishReason reason, const std::string& error) {
  EngineCoreOutputs outputs;
  outputs.stats = sent_stats_;
  EngineCoreOutput& output = outputs.Add(request_id);
  output.finish_reason = reason;
  output.error = error;
  connection_.Send(EncodeOutputs(outputs, std::chrono::steady_clock::now()));
}

void EngineServer::SendOutputs() {
  engine_.GetOutputs(outputs_, std::chrono::milliseconds(0));
  const SchedulerStats& stats = outputs_.stats;
  const bool stats_changed = stats.num_running_reqs != sent_stats_.num_running_reqs ||
                             stats.num_waiting_reqs != sent_stats_.num_waiting_reqs ||
                             stats.admission_paused != sent_stats_.admission_paused;
  if (outputs_.empty() && !stats_changed) return;
  sent_stats_ = stats;
  last_send_ = std::chrono::steady_clock::now();
  connection_.Send(EncodeOutputs(outputs_, last_send_));
}

void EngineServer::Die(const std::string& cause) {
  is_dead_ = true;
  connection_.Send(EncodeDied(cause));
}

}  // namespace vllm
