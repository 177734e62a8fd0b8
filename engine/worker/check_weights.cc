#include "engine/worker/check_weights.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/layers/communicator.h"
#include "engine/layers/load_context.h"
#include "engine/layers/pooling/pooler.h"
#include "engine/models/registry.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/threading/thread_pool.h"

namespace vllm {
namespace {

// Pretends that every matrix is filled already, so that layers look up the tensors of a matrix but do not read them.
class LookupOnlyMemory final : public WeightMemory {
 public:
  kernels::BufferSource Buffers(const std::string& /*name*/) override { return FilledBuffers; }
  bool Contains(const std::string& /*name*/, const std::vector<size_t>& /*sizes*/) const override { return true; }
  kernels::BufferSource TemporaryBuffers() override { return FilledBuffers; }

 private:
  // The buffers have no memory. They count as filled, so no layer writes to them.
  static std::vector<kernels::AlignedBuffer> FilledBuffers(const std::vector<size_t>& sizes) {
    static const std::shared_ptr<const void> owner = std::make_shared<char>();
    std::vector<kernels::AlignedBuffer> buffers;
    buffers.reserve(sizes.size());
    for (const size_t size : sizes) buffers.emplace_back(owner, nullptr, size);
    return buffers;
  }
};

}  // namespace

void CheckWeights(const VllmConfig& config, const WeightSource& weights) {
  VllmConfig small = config;
  small.scheduler.max_num_batched_tokens = 1;
  kernels::ThreadPool threads(1);
  SingleRankCommunicator communicator;
  Workspace workspace;
  const StepContext step{&kernels::KernelsFor(kernels::BestIsa()), &threads, &communicator, &workspace};
  LookupOnlyMemory memory;
  const LoadContext load{small, weights, memory, step};
  BuildModel(load);
  const Pooler pooler(load);
}

}  // namespace vllm
