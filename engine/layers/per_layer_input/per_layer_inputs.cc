#include "engine/layers/per_layer_input/per_layer_inputs.h"

#include <algorithm>
#include <vector>

#include "engine/layers/column_gather.h"
#include "engine/layers/for_each_row.h"

namespace vllm {

PerLayerInputs::PerLayerInputs(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                               const PerLayerInputsSpec& spec)
    : step_(load.step),
      spec_(spec),
      hidden_size_(model.hidden_size),
      shard_(ShardOfRows(spec.total_size(), load.step.rank(), load.step.world_size())),
      projection_(load, model, model.hidden_size, SplitMatrix(load.step, prefix + spec.projection, spec.total_size()),
                  false),
      norm_(load, prefix + spec.projection_norm, spec.size, spec.norm),
      table_(load, prefix + spec.embed_tokens + ".weight", spec.vocab_size, spec.total_size()),
      table_rows_(static_cast<size_t>(load.step.threads->num_threads() * spec.total_size()) * sizeof(float)) {}

void PerLayerInputs::Forward(std::span<const int32_t> token_ids, const float* hidden, float* out,
                             const int32_t* lora_slots) const {
  const auto num_tokens = static_cast<int64_t>(token_ids.size());
  const int64_t stride = spec_.total_size();
  projection_.Forward(hidden, hidden_size_, num_tokens, out + shard_.begin, stride, lora_slots);
  AllGather(step_, {&shard_, 1}, num_tokens, stride, out);
  const auto projection_scale = static_cast<float>(spec_.projection_scale);
  const auto table_scale = static_cast<float>(spec_.table_scale);
  const auto sum_scale = static_cast<float>(spec_.sum_scale);
  ForEachRow(step_, num_tokens, 4 * stride, [&](int64_t row, int thread) {
    float* to = out + row * stride;
    step_.kernels->scale(to, projection_scale, stride);
    for (int64_t offset = 0; offset < stride; offset += spec_.size) norm_.Row(to + offset, to + offset);
    float* embedding = table_rows_.as<float>() + thread * stride;
    const int64_t token = token_ids[static_cast<size_t>(row)];
    table_.Read(token < spec_.vocab_size ? token : 0, embedding);
    step_.kernels->add_scaled(to, embedding, table_scale, stride);
    step_.kernels->scale(to, sum_scale, stride);
  });
}

PerLayerInputBlock::PerLayerInputBlock(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                                       const PerLayerInputBlockSpec& spec)
    : step_(load.step),
      spec_(spec),
      hidden_size_(model.hidden_size),
      shard_(ShardOfRows(spec.size, load.step.rank(), load.step.world_size())),
      gate_(load, model, model.hidden_size, SplitMatrix(load.step, prefix + spec.gate, spec.size), false),
      projection_(load, model, prefix + spec.projection, model.hidden_size,
                  ShardsOfRows(spec.size, load.step.world_size()), false),
      norm_(load, prefix + spec.out_norm, model.hidden_size, spec.norm) {}

void PerLayerInputBlock::Forward(const float* inputs, const float* x, int64_t num_tokens, float* scratch, float* out,
                                 const int32_t* lora_slots) const {
  const int64_t size = shard_.count;
  gate_.Forward(x, hidden_size_, num_tokens, scratch, size, lora_slots);
  ForEachRow(step_, num_tokens, 4 * size, [&](int64_t row) {
    float* gate = scratch + row * size;
    const float* input = inputs + row * spec_.stride + spec_.offset + shard_.begin;
    step_.kernels->activation(spec_.activation, gate, input, size, gate);
  });
  projection_.Forward(scratch, size, num_tokens, out, lora_slots);
  norm_.Forward(out, num_tokens, out);
}

}  // namespace vllm
