// "KVProbeForCausalLM": a Llama that tells how its KV cache is used. Register by linking; a test sets the plan before
// it makes an executor.
#pragma once

namespace vllm::testing_support {

struct KVProbePlan {
  // Layers with a window ask for whole sequences all the same: one KV-cache group, the window only a mask.
  bool whole_sequences = false;
  // While the model runs, every block that this step's rows need not see is NaN.
  bool poison = false;
};

// Not to be changed while an executor exists.
void SetKVProbePlan(const KVProbePlan& plan);

}  // namespace vllm::testing_support
