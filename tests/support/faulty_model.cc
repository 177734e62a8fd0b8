#include "tests/support/faulty_model.h"

#include <fcntl.h>
#include <unistd.h>

#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "engine/models/registry.h"

namespace vllm::testing_support {

namespace {

FaultPlan plan;
WaitPlan wait_plan;

// Waits until the FIFO has a writer: open() for reading blocks until then.
void WaitAt(const std::string& fifo) {
  if (fifo.empty()) return;
  const int fd = open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) close(fd);
}

class FaultyModel final : public Model {
 public:
  FaultyModel(std::unique_ptr<Model> inner, int rank) : inner_(std::move(inner)), rank_(rank) {}

  const CachedLayers& Layers() const override { return inner_->Layers(); }

  void Forward(const ModelInput& input, KVCache& cache, float* hidden) override {
    const int64_t call = num_calls_++;
    if (rank_ == 0 && call == wait_plan.call) WaitAt(wait_plan.forward_fifo);
    if (plan.when == FaultPlan::When::kForward && rank_ == plan.rank && call == plan.call)
      throw std::runtime_error(kFaultCause);
    inner_->Forward(input, cache, hidden);
  }

  void ComputeLogits(const float* hidden, int64_t num_rows, float* logits, int64_t stride,
                     const int32_t* lora_slots) override {
    inner_->ComputeLogits(hidden, num_rows, logits, stride, lora_slots);
    if (plan.when == FaultPlan::When::kLogits && rank_ == plan.rank && num_calls_ > plan.call && plan.row < num_rows) {
      logits[plan.row * stride] = std::numeric_limits<float>::quiet_NaN();
    }
  }

 private:
  std::unique_ptr<Model> inner_;
  int rank_;
  int64_t num_calls_ = 0;
};

[[maybe_unused]] const bool kRegistered =
    RegisterModel("FaultyForCausalLM", [](const LoadContext& load) -> std::unique_ptr<Model> {
      if (plan.when == FaultPlan::When::kLoad && load.step.rank() == plan.rank) throw std::runtime_error(kFaultCause);
      if (load.step.rank() == 0) WaitAt(wait_plan.load_fifo);
      return std::make_unique<FaultyModel>(BuildArchitecture("LlamaForCausalLM", load), load.step.rank());
    });

}  // namespace

void SetFaultPlan(const FaultPlan& new_plan) { plan = new_plan; }
void SetWaitPlan(const WaitPlan& new_plan) { wait_plan = new_plan; }

}  // namespace vllm::testing_support
