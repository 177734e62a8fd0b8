// OutputProcessor: turns EngineCoreOutputs into RequestOutputs. It detokenizes, checks stop strings, joins the
// sequences of a request with n > 1, and updates the metrics. It never sends anything to the engine. Owned by
// LLMEngine, called from the front-end thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/frontend/metrics.h"
#include "engine/frontend/parent_request.h"
#include "engine/frontend/request_state.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/request_output.h"

namespace vllm {

struct ProcessedOutputs {
  std::vector<RequestOutput> request_outputs;
  // Sequences that a stop string has ended. They still run in the engine, which sees no text.
  std::vector<RequestId> reqs_to_abort;
};

class OutputProcessor {
 public:
  // `tokenizer` may be null and must outlive this object.
  explicit OutputProcessor(const tokenizer::Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  bool Contains(const std::string& request_id) const { return parents_.contains(request_id); }
  // Registers a request and its sequences. REQUIRES: !Contains(parent->request_id).
  void AddRequest(std::unique_ptr<ParentRequest> parent);
  // Removes a request that could not be sent to the engine. Ignores unknown ids.
  void RemoveRequest(const std::string& request_id);

  // Processes the engine's outputs. Those of requests that were aborted or rejected since the last call come first.
  // Outputs of unknown sequences are dropped. The result is valid until the next call.
  const ProcessedOutputs& Process(const EngineCoreOutputs& engine_core_outputs);
  // Ends a request. The next Process returns its final output. Returns the ids of the unfinished sequences, which the
  // engine has to abort; none if the request id is unknown.
  std::vector<RequestId> AbortRequest(const std::string& request_id);
  // Sets the constraint of the outputs of a request with structured_outputs. `sequence` is one of its sequences. Must
  // be called before the engine has outputs of them. Returns false if the grammar does not allow the prior output
  // tokens.
  bool SetConstraint(const std::string& request_id, const EngineCoreRequest& sequence);
  // Ends a request that is found to be invalid before the engine has it. The next Process returns its final output,
  // with `rejected`. The metrics do not count the request.
  void RejectRequest(const std::string& request_id, const std::string& error);
  // Ends every request with FinishReason::kError and adds the final outputs to the result of the last Process.
  void FailAll(const std::string& cause);

  size_t num_running() const { return parents_.size(); }
  size_t num_unfinished() const { return parents_.size() + pending_outputs_.size(); }
  // Returns true if the next Process has outputs even if the engine sends none.
  bool HasPendingOutputs() const { return !pending_outputs_.empty(); }
  const FrontendMetrics& metrics() const { return metrics_; }

 private:
  struct Child {
    Child(ParentRequest& of, int64_t index, const tokenizer::Tokenizer* tokenizer)
        : parent(&of),
          state(index, of.params, of.prompt_token_ids, of.prior_output_token_ids, of.arrival_time, tokenizer) {}

    ParentRequest* parent;
    RequestState state;
  };

  void RecycleOutputs();
  void ProcessOne(const EngineCoreOutput& output);
  // Updates the sequence, its parent and the metrics. Returns true if the request has finished.
  bool UpdateState(const EngineCoreOutput& output, Child& child);
  // Adds a RequestOutput for this engine output, if the request's output kind requires one now.
  void EmitOutput(const EngineCoreOutput& output, Child& child, bool request_finished);
  // Returns an output with the fields that belong to the whole request. Reuses the buffers of an earlier output if
  // possible.
  RequestOutput MakeOutput(ParentRequest& parent, bool finished);
  void FillPrompt(ParentRequest& parent, RequestOutput& output);
  // Ends all unfinished sequences of a request and returns its final output.
  RequestOutput EndRequest(ParentRequest& parent, FinishReason reason, const std::string& error);

  const tokenizer::Tokenizer* tokenizer_;
  std::unordered_map<std::string, std::unique_ptr<ParentRequest>> parents_;
  std::unordered_map<RequestId, Child> children_;  // unfinished sequences
  ProcessedOutputs processed_;
  std::vector<RequestOutput> pending_outputs_;  // of aborted and rejected requests
  std::vector<RequestOutput> spare_outputs_;    // earlier outputs, kept for their buffers
  FrontendMetrics metrics_;
};

}  // namespace vllm
