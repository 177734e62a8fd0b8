// "FaultyForCausalLM": a Llama that fails as it is told: at load, in the profiling run or at a later step, on one rank,
// by throwing or by computing logits that are not numbers. Register by linking; a test sets the plan before it makes an
// executor.
#pragma once

#include <cstdint>
#include <string>

namespace vllm::testing_support {

struct FaultPlan {
  enum class When : uint8_t { kNever, kLoad, kForward, kLogits };
  When when = When::kNever;
  int rank = 0;
  // Which call of Forward on that rank throws; 0 is the profiling run's.
  int64_t call = 0;
  // kLogits: from that call on, logits rows of index `row` become NaN.
  int64_t row = 0;
};

// Where rank 0 waits until somebody opens a FIFO for writing, so that a test sees the program in the middle of its
// work.
struct WaitPlan {
  std::string load_fifo;     // while the model is built
  std::string forward_fifo;  // in call `call` of Forward
  int64_t call = 0;
};

// Not to be changed while an executor exists.
void SetFaultPlan(const FaultPlan& plan);
void SetWaitPlan(const WaitPlan& plan);

inline constexpr char kFaultCause[] = "the faulty model throws";

}  // namespace vllm::testing_support
