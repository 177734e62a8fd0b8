#include "engine/layers/alt_up/laurel.h"

#include <vector>

#include "engine/layers/for_each_row.h"

namespace vllm {

Laurel::Laurel(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const LaurelSpec& spec)
    : step_(load.step),
      hidden_size_(model.hidden_size),
      shard_(ShardOfRows(spec.rank, load.step.rank(), load.step.world_size())),
      left_(load, model, model.hidden_size, SplitMatrix(load.step, prefix + spec.prefix + "linear_left", spec.rank),
            false),
      right_(load, model, prefix + spec.prefix + "linear_right", model.hidden_size,
             ShardsOfRows(spec.rank, load.step.world_size()), false),
      norm_(load, prefix + spec.prefix + "post_laurel_norm", model.hidden_size, spec.norm) {}

void Laurel::Forward(const float* x, int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) const {
  left_.Forward(x, hidden_size_, num_tokens, scratch, shard_.count, lora_slots);
  right_.Forward(scratch, shard_.count, num_tokens, out, lora_slots);
  ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
    float* y = out + row * hidden_size_;
    norm_.Row(y, y);
    step_.kernels->add(y, x + row * hidden_size_, hidden_size_);
  });
}

}  // namespace vllm
