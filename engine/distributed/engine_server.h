// EngineServer: runs the engine of a rank other than 0 for rank 0. Owned by the process's main function; its thread.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/core/engine_core_client.h"
#include "engine/distributed/rank_connection.h"
#include "engine/structured_output/compiler/grammar_compiler.h"

namespace vllm {

struct ReasoningFormat;

class EngineServer {
 public:
  // Outputs of a running engine are sent at most this often, so that rank 0 receives few messages with many tokens.
  static constexpr std::chrono::milliseconds kSendInterval{10};

  // Borrows the references. `tokenizer` and `reasoning_format` may be null.
  EngineServer(RankConnection& connection, EngineCoreClient& engine, const VllmConfig& config,
               const tokenizer::Tokenizer* tokenizer, std::shared_ptr<const ReasoningFormat> reasoning_format);

  // Sends the hello, then serves requests until rank 0 ends the job. If the engine dies, reports that and waits for
  // the end. Throws WireError.
  void Serve(HelloMessage hello);

 private:
  // Returns false if the message ends the job.
  bool Handle(std::string_view message);
  void Add(std::string_view message);
  // A request whose grammar is being compiled.
  struct HeldRequest {
    std::shared_ptr<EngineCoreRequest> request;
    GrammarFuturePtr grammar;
  };
  // Gives the engine the request, or rejects it if its grammar is rejected. REQUIRES: the grammar is done or null.
  void Release(HeldRequest held);
  void ReleaseCompiled();
  // Waits for the grammars of all requests, so that a shutdown does not lose them.
  void ReleaseAll();
  // Removes a request whose grammar is being compiled. Returns false if there is no such request.
  bool Unhold(RequestId request_id);
  // Ends a request that the engine does not have.
  void End(RequestId request_id, FinishReason reason, const std::string& error);
  void Reject(RequestId request_id, const std::string& error) { End(request_id, FinishReason::kError, error); }
  // Throws RequestError if the request does not fit the model.
  void Check(const EngineCoreRequest& request) const;
  void Abort(RequestId request_id);
  // Sends the outputs since the last call, or only the statistics if these have changed.
  void SendOutputs();
  // Waits until a message has arrived, or outputs that may be sent.
  void Wait() const;
  void Die(const std::string& cause);

  RankConnection& connection_;
  EngineCoreClient& engine_;
  const int64_t vocab_size_;
  GrammarCompiler grammar_compiler_;  // calls engine_.Interrupt
  std::deque<HeldRequest> held_requests_;
  const std::shared_ptr<const ReasoningFormat> reasoning_format_;
  bool is_dead_ = false;
  std::chrono::steady_clock::time_point last_send_{};
  SchedulerStats sent_stats_;
  EngineCoreOutputs outputs_;
  std::vector<std::string> messages_;
};

}  // namespace vllm
