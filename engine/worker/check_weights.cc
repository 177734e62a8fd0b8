#include "engine/worker/check_weights.h"

#include "engine/layers/communicator.h"
#include "engine/layers/rank_context.h"
#include "engine/models/registry.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/threading/thread_pool.h"

namespace vllm {

void CheckWeights(const VllmConfig& config, const WeightSource& weights) {
  VllmConfig small = config;
  small.scheduler.max_num_batched_tokens = 1;
  ThreadPool threads(1);
  SingleRankCommunicator communicator;
  RankContext rank;
  rank.kernels = &KernelsFor(BestIsa());
  rank.threads = &threads;
  rank.communicator = &communicator;
  rank.is_check = true;
  BuildModel({small, weights, rank});
}

}  // namespace vllm
