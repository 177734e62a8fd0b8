// TraceTimeline: the lines of `vllmcli trace show`. Takes the records of a trace in order and returns a line for each
// step once its result is known. Keeps the lengths of unfinished requests. Owned by the command; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/trace/trace_format.h"

namespace vllm::app {

class TraceTimeline {
 public:
  TraceTimeline(const TraceBegin& begin, bool as_json) : begin_(begin), as_json_(as_json) {}

  // Returns the first line, which describes the configuration.
  std::string Heading() const;
  // Takes the next record. Returns the line of a step that is now complete, if any.
  std::optional<std::string> Take(const TraceRecord& record);
  // Call this at the end of the trace. Returns the line of a last step without a result, and of events after the last
  // step, if there are any.
  std::optional<std::string> Finish();

  bool has_end() const { return has_end_; }

 private:
  struct Request {
    int64_t num_tokens = 0;  // prompt and output tokens
    int64_t num_computed_tokens = 0;
    int64_t num_computed_before = 0;  // before the last step
    bool has_output = false;          // sampled a token since it was added
  };
  // Events since the last line.
  struct Events {
    std::vector<RequestId> added;
    std::vector<RequestId> rejected;
    std::vector<std::pair<RequestId, FinishReason>> ended;
    bool reset = false;
    std::optional<bool> pause;  // the last of SetAdmissionPaused

    bool empty() const { return added.empty() && rejected.empty() && ended.empty() && !reset && !pause; }
  };
  enum class Result : uint8_t { kNone, kDone, kRolledBack };

  void TakeAdd(const TraceAdd& add);
  void TakeStep(const TraceStep& step);
  void TakeUpdate(const TraceUpdate& update);
  void RollBack();
  // Returns the line of the current step, and forgets the step and the events.
  std::string EndStep(Result result, int64_t elapsed_us);
  std::string StepText(Result result, double run_ms) const;
  std::string StepJson(Result result, double run_ms) const;

  const TraceBegin begin_;
  const bool as_json_;
  std::unordered_map<RequestId, Request> requests_;
  std::unordered_set<RequestId> rolled_back_;  // lost their blocks in a rolled-back step; not preempted
  Events events_;
  bool has_step_ = false;
  bool has_end_ = false;
  int64_t num_steps_ = 0;
  double time_ms_ = 0.0;  // of the current step, since the start
  TraceStep step_;        // the current step
  std::vector<RequestId> preempted_;
  int64_t num_prefill_tokens_ = 0;
  int64_t num_decode_tokens_ = 0;
};

}  // namespace vllm::app
