// "KVProbeForCausalLM": a Llama for tests of KV-cache groups. Linking kv_probe_model.cc registers the architecture. A
// test sets the plan before it creates an executor.
#pragma once

namespace vllm::testing_support {

struct KVProbePlan {
  // Sliding-window layers keep whole sequences too: there is one KV-cache group, and the window is only a mask.
  bool whole_sequences = false;
  // While the model runs, every block that this step's rows do not need contains NaN.
  bool poison = false;
};

// REQUIRES: no executor exists.
void SetKVProbePlan(const KVProbePlan& plan);

}  // namespace vllm::testing_support
