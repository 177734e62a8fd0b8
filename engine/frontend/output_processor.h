// OutputProcessor: EngineCoreOutputs -> RequestOutputs: detokenizes, ends at stop strings, joins the children of
// n > 1, keeps the books. Owned by LLMEngine, called from the front-end thread.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/frontend/metrics.h"
#include "engine/frontend/output_memory.h"
#include "engine/frontend/parent_request.h"
#include "engine/frontend/request_state.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/request_output.h"

namespace vllm {

class OutputProcessor {
 public:
  // `tokenizer` may be null and must outlive this. Requests start while what they hold together, and the largest record
  // of one of them, is within `max_output_memory` bytes; one always may.
  explicit OutputProcessor(const Tokenizer* tokenizer, int64_t max_output_memory = std::numeric_limits<int64_t>::max())
      : tokenizer_(tokenizer), max_output_memory_(max_output_memory) {}

  bool Contains(const std::string& request_id) const { return parents_.contains(request_id); }
  // Registers a request; once there is room for its output, the children it allows wait in TakeToSubmit. REQUIRES:
  // !Contains(its id).
  void AddRequest(std::unique_ptr<ParentRequest> parent, const OutputMemory& memory = {});
  // Forgets a request that never reached the engine.
  void RemoveRequest(const std::string& request_id);

  // Drops the outputs of the last round; outputs made by aborts since then become this round's.
  void BeginRound();
  void Process(const EngineCoreOutputs& engine_core_outputs);
  // Ends a request from outside: its final output is given out with the next round. Unknown ids are ignored.
  void Abort(const std::string& request_id);
  // Ends every request with FinishReason::kError, in this round.
  void FailAll(const std::string& cause);

  const std::vector<RequestOutput>& outputs() const { return outputs_; }
  // What the engine has to be told; emptied by the call that takes it.
  void TakeToSubmit(std::vector<EngineCoreRequestPtr>& requests);
  void TakeToAbort(std::vector<RequestId>& request_ids);

  size_t num_running() const { return parents_.size(); }
  size_t num_unfinished() const { return parents_.size() + early_outputs_.size(); }
  const FrontendMetrics& metrics() const { return metrics_; }

 private:
  struct Child {
    Child(ParentRequest& of, int64_t index, const Tokenizer* tokenizer)
        : parent(&of), state(index, of.params(), of.prompt_token_ids(), of.arrival_time(), tokenizer) {}

    ParentRequest* parent;
    RequestState state;
  };

  bool HasRoomFor(const OutputMemory& memory) const;
  void StartWaiting();
  // Forgets a parent and starts those that its memory makes room for.
  void EraseParent(const std::string& request_id);
  void SubmitAllowed(ParentRequest& parent);
  void ProcessOne(const EngineCoreOutput& output);
  // An output with reused buffers, filled with what concerns the whole request.
  RequestOutput MakeOutput(ParentRequest& parent, bool finished);
  void FillPrompt(ParentRequest& parent, RequestOutput& output);
  // The output of a request whose remaining children all end now.
  RequestOutput EndRequest(ParentRequest& parent, FinishReason reason, const std::string& error);

  const Tokenizer* tokenizer_;
  const int64_t max_output_memory_;
  std::unordered_map<std::string, std::unique_ptr<ParentRequest>> parents_;
  struct Waiting {
    std::string request_id;
    OutputMemory memory;
  };
  std::deque<Waiting> waiting_;                            // parents without room, first come first served
  std::unordered_map<std::string, OutputMemory> started_;  // all other parents
  int64_t held_bytes_ = 0;                                 // of those together
  std::unordered_map<RequestId, Child> children_;
  std::vector<RequestOutput> outputs_;
  std::vector<RequestOutput> early_outputs_;
  std::vector<RequestOutput> spare_outputs_;  // kept for their buffers
  std::vector<EngineCoreRequestPtr> to_submit_;
  std::vector<RequestId> to_abort_;
  FrontendMetrics metrics_;
};

}  // namespace vllm
