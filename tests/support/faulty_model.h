// "FaultyForCausalLM": a Llama that fails on purpose on one rank. It throws at load, in the profiling run or at a later
// step, or it computes NaN logits. Linking faulty_model.cc registers the architecture. The plans are global. A test
// sets them from its own thread before it creates an executor.
#pragma once

#include <cstdint>
#include <string>

namespace vllm::testing_support {

struct FaultPlan {
  enum class When : uint8_t { kNever, kLoad, kForward, kLogits };
  When when = When::kNever;
  int rank = 0;
  // kForward: this call of Forward on the rank throws. Call 0 is the profiling run.
  int64_t call = 0;
  // kLogits: from call `call` of Forward on, row `row` of the logits contains a NaN if there is such a row.
  int64_t row = 0;
};

// Makes rank 0 wait until a test opens a FIFO for writing, so that the test can act while the program is busy. If a
// path is empty, the rank does not wait.
struct WaitPlan {
  std::string load_fifo;     // before the model is built
  std::string forward_fifo;  // at the start of call `call` of Forward
  int64_t call = 0;
};

// REQUIRES: no executor exists.
void SetFaultPlan(const FaultPlan& plan);
void SetWaitPlan(const WaitPlan& plan);

inline constexpr char kFaultCause[] = "the faulty model throws";

}  // namespace vllm::testing_support
