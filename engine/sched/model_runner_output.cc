#include "engine/sched/model_runner_output.h"

namespace vllm {

void ModelRunnerOutput::Clear() {
  request_ids.clear();
  sampled_token_ids.clear();
  sampled_offsets.assign(1, 0);
  num_accepted_drafts.clear();
  logprobs.clear();
  logprobs_index.clear();
  prompt_logprobs.clear();
  pooled.clear();
  failed.clear();
}

}  // namespace vllm
