// Speculator: decides after each step which drafts the next one verifies. It asks the Proposer, cuts the drafts where
// the grammar of a structured output does not allow them, and, if the configuration is adaptive, drafts only as many
// tokens as pay: those that raise the expected number of tokens per second, from how often drafts were accepted and how
// long steps take. Owned by EngineCore; engine thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/sched/scheduler.h"
#include "engine/sched/scheduler_output.h"
#include "engine/spec_decode/draft_calibration.h"
#include "engine/spec_decode/draft_depth.h"
#include "engine/spec_decode/proposer.h"
#include "engine/spec_decode/step_cost.h"
#include "engine/structured_output/output_constraint.h"

namespace vllm {

class Speculator {
 public:
  // `proposer` may be null: then only grammars propose tokens.
  Speculator(const VllmConfig& config, std::unique_ptr<Proposer> proposer);
  ~Speculator();

  // Call before each step, with its finished_req_ids.
  void Finish(std::span<const RequestId> request_ids);
  // Call after Scheduler::UpdateFromOutput. `outputs` are the step's, and `seconds` the time that it took. Sets the
  // drafts of running requests.
  void AfterStep(const SchedulerOutput& step, const EngineCoreOutputs& outputs, double seconds, Scheduler& scheduler);

 private:
  // What it knows of a request that has sampled tokens.
  struct RequestInfo {
    EngineCoreRequestPtr request;
    std::vector<int32_t> output_token_ids;
    int64_t num_draft_tokens = 0;           // EngineCoreOutput's, at the last step
    int64_t num_accepted_draft_tokens = 0;  // same
    std::vector<float> estimates;           // of the drafts that were set last
    DraftCalibration::RequestRecord record;
    // If the request has a grammar: has received the first num_fed output tokens.
    std::unique_ptr<OutputConstraint> constraint;
    size_t num_fed = 0;
    bool forces_tokens = false;  // the workers do not append the tokens that its grammar forces
  };
  // A request that the next step can continue, with its candidates for drafts: drafts_[begin, end).
  struct Candidate {
    RequestId request_id = 0;
    RequestInfo* info = nullptr;
    SpeculativeMethod method = SpeculativeMethod::kOff;
    size_t begin = 0;
    size_t end = 0;
    size_t num_chosen = 0;
  };
  // One more draft of a candidate. `probability` is that of all its drafts up to this one.
  struct Option {
    size_t candidate = 0;
    double probability = 0;
  };

  void FinishOne(RequestId id);
  void Learn(const EngineCoreOutput& output, RequestInfo& info);
  void CollectRequests(const EngineCoreOutputs& outputs, Scheduler& scheduler);
  // Cuts the proposed tokens before one that is not in the vocabulary. With a grammar, replaces them, or cuts them.
  void ApplyGrammars();
  // Sets forced_ to the tokens that the grammar of a request forces next. Returns false if there are none.
  bool FindForced(RequestInfo& info, int64_t max_drafts);
  static void FeedConstraint(RequestInfo& info);
  // Asks the proposer, unless its proposals are not worth their time.
  void Propose();
  // Adds the time that the last step's drafts saved, or cost, with the time of proposing them.
  void CountGain(const SchedulerOutput& step, int64_t num_accepted);
  // Sets num_chosen of each candidate so that the expected number of tokens per second is highest.
  void ChooseAdaptively();

  const SpeculativeConfig config_;
  const int64_t vocab_size_;
  const bool workers_append_forced_;  // enable_jump_decoding
  const bool limits_depth_;           // with draft_depth_
  std::unique_ptr<Proposer> proposer_;
  std::unordered_map<RequestId, RequestInfo> infos_;
  DraftCalibration calibration_;
  StepCost step_cost_;
  int64_t num_accepted_ = 0;  // drafts since start

  // The time of a draft model grows with the number of drafts.
  DraftDepth draft_depth_;
  // Another proposer that takes noticeable time is asked only while its drafts save more time than it takes.
  double propose_seconds_ = 0;  // of the proposals that the next step may verify; 0: none
  double gain_ = 0;             // recent mean of the seconds that a step with proposals has saved
  int64_t num_gains_ = 0;       // number of steps in gain_
  int64_t num_steps_to_pause_ = 0;
  int64_t pause_length_ = 0;  // of the last pause, in steps; 0: the last proposals were worth their time

  // Scratch of one step.
  std::vector<DraftRequest> requests_;
  std::vector<Candidate> candidates_;  // [requests_.size()]
  Drafts proposed_;
  Drafts drafts_;  // after ApplyGrammars
  std::vector<int32_t> forced_;
  std::vector<Option> options_;
};

}  // namespace vllm
