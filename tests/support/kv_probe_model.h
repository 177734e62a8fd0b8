// "KVProbeForCausalLM": a Llama for tests of KV-cache groups. Linking kv_probe_model.cc registers the architecture. The
// plan is global; a test sets it from its own thread before it creates an executor.
#pragma once

namespace vllm::testing_support {

struct KVProbePlan {
  // Sliding-window layers also keep the KV of whole sequences. So there is one KV-cache group, and the window is only a
  // mask.
  bool whole_sequences = false;
  // While the model runs, every block that the rows of the step do not attend to contains NaN.
  bool poison = false;
};

// REQUIRES: no executor exists.
void SetKVProbePlan(const KVProbePlan& plan);

}  // namespace vllm::testing_support
