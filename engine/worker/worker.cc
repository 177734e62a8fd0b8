#include "engine/worker/worker.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "engine/layers/load_context.h"
#include "engine/models/registry.h"
#include "engine/worker/kernel_choice.h"

namespace vllm {

Worker::Worker(const VllmConfig& config, const WeightSource& weights, WeightMemory& memory, Communicator& communicator,
               const std::vector<int>& cores, LogitsBuffer& logits_buffer, MaskThread* mask_thread,
               Calibration* calibration, CalibrationRun* calibration_run)
    : config_(config), threads_(static_cast<int>(config.parallel.threads_per_rank), cores, config.parallel.Wait()) {
  step_.kernels = &ChooseKernels(config);
  step_.threads = &threads_;
  step_.communicator = &communicator;
  step_.workspace = &workspace_;
  LoadModel(weights, memory, calibration, calibration_run);
  runner_ = std::make_unique<ModelRunner>(config_, step_, *model_, logits_buffer, mask_thread, pooler_.get());
}

void Worker::LoadModel(const WeightSource& weights, WeightMemory& memory, Calibration* calibration,
                       CalibrationRun* calibration_run) {
  const LoadContext load{config_, weights, memory, step_, &lora_layers_, calibration, calibration_run};
  model_ = BuildModel(load);
  if (step_.rank() == 0) pooler_ = std::make_unique<Pooler>(load);
  // The ranks fill parts of shared matrices, and adapters with DoRA read these matrices.
  step_.communicator->Barrier();
  for (const std::shared_ptr<const LoRAAdapter>& adapter : config_.lora.adapters) lora_layers_.Add(adapter, weights);
  for (size_t slot = 0; slot < static_cast<size_t>(config_.NumLoRAsLoadedAtStart()); ++slot) lora_layers_.Load(slot);
  for (const MappedFile* file : weights.Files()) file->CheckUnchanged();
}

int64_t Worker::PageSizeBytes() const {
  return model_->Layers().BlockBytes(config_.cache.block_size, config_.KVCacheDType());
}

int64_t Worker::NumStateBlocks() const {
  return RecurrentStateLayout(model_->Layers().recurrent, PageSizeBytes()).num_blocks();
}

void Worker::ProfileRun() {
  const int64_t num_tokens = std::max<int64_t>(
      1,
      std::min({config_.scheduler.max_num_batched_tokens, config_.cache.block_size, config_.model.max_model_len - 1}));
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < num_tokens; ++i) {
    tokens.push_back(static_cast<int32_t>(i * 7919 % config_.model.vocab_size));
  }
  ReadTexts({tokens});
}

int64_t Worker::TextBytes() const {
  return (static_cast<int64_t>(KVGroupWindows().size()) + NumStateBlocks()) * PageSizeBytes();
}

void Worker::ReadTexts(const std::vector<std::vector<int32_t>>& texts) {
  SchedulerOutput step, forget;
  int32_t num_blocks = 0;
  for (const std::vector<int32_t>& tokens : texts) {
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id =
        std::numeric_limits<RequestId>::max() - static_cast<RequestId>(forget.finished_req_ids.size());
    request->prompt_token_ids = tokens;
    request->sampling_params.max_tokens = 1;
    request->sampling_params.temperature = 0.0;
    if (!config_.model.can_generate) request->pooling_params = PoolingParams{.task = PoolingTask::kEmbed};
    // Every group writes into its own block, and the recurrent state is in the blocks after those.
    std::vector<int32_t> block_ids, state_block_ids;
    for (size_t g = 0; g < KVGroupWindows().size(); ++g) block_ids.push_back(++num_blocks);
    for (int64_t i = 0; i < NumStateBlocks(); ++i) state_block_ids.push_back(++num_blocks);
    step.scheduled_new_reqs.push_back({request, block_ids, 0, state_block_ids});
    step.num_scheduled_tokens.push_back({request->request_id, std::ssize(tokens)});
    step.total_num_scheduled_tokens += std::ssize(tokens);
    forget.finished_req_ids.push_back(request->request_id);
  }
  KVCache cache(model_->Layers(), num_blocks + 1, config_.cache.block_size, config_.KVCacheDType());
  ModelRunnerOutput output;
  runner_->Execute(step, cache, step_.rank() == 0 ? &output : nullptr);
  runner_->Execute(forget, cache, step_.rank() == 0 ? &output : nullptr);
}

void Worker::InitializeKVCache(int64_t num_blocks) {
  cache_ = KVCache(model_->Layers(), num_blocks + 1, config_.cache.block_size, config_.KVCacheDType());
}

void Worker::Execute(const SchedulerOutput& scheduler_output, ModelRunnerOutput* output) {
  runner_->Execute(scheduler_output, cache_, output);
}

}  // namespace vllm
