#include "engine/models/decoder_layer.h"

#include <algorithm>

#include "engine/layers/for_each_row.h"

namespace vllm {

DecoderLayer::DecoderLayer(const LoadContext& load, const DecoderSpec& decoder, const LayerSpec& spec,
                           CachedLayers& cached, const std::string& prefix)
    : step_(load.step),
      hidden_size_(load.config.model.hidden_size),
      residual_scale_(static_cast<float>(decoder.residual_scale)),
      parallel_(spec.parallel),
      attention_norms_(MakeNorms(load, decoder, spec.attention_block, prefix)),
      mlp_norms_(MakeNorms(load, decoder, spec.mlp_block, prefix)) {
  const std::string mixer_prefix = prefix + spec.attention_block.prefix;
  const size_t index = cached.recurrent.size();
  if (spec.gated_delta_net) {
    mixer_ = std::make_unique<GatedDeltaNet>(load, load.config.model, index, mixer_prefix, *spec.gated_delta_net);
  } else if (spec.short_conv) {
    mixer_ = std::make_unique<ShortConv>(load, load.config.model, index, mixer_prefix, *spec.short_conv);
  } else if (spec.mamba2) {
    mixer_ = std::make_unique<Mamba2>(load, load.config.model, index, mixer_prefix, *spec.mamba2);
  }
  if (mixer_ != nullptr) {
    cached.recurrent.push_back(mixer_->state());
  } else {
    attention_.emplace(load, load.config.model, cached.attention.size(), mixer_prefix, spec.attention);
    cached.attention.push_back(attention_->kv_layer());
  }
  const std::string mlp_prefix = prefix + spec.mlp_block.prefix;
  if (spec.moe) {
    moe_.emplace(load, load.config.model, mlp_prefix, *spec.moe);
  } else {
    mlp_.emplace(load, load.config.model, mlp_prefix, spec.mlp);
  }
}

DecoderLayer::Norms DecoderLayer::MakeNorms(const LoadContext& load, const DecoderSpec& decoder, const BlockSpec& block,
                                            const std::string& prefix) const {
  Norms norms;
  const auto make = [&](const std::string& name, std::optional<Norm>& norm) {
    if (!name.empty()) norm.emplace(load, prefix + name, hidden_size_, decoder.norm);
  };
  make(block.in_norm, norms.in);
  make(block.out_norm, norms.out);
  make(block.sum_norm, norms.sum);
  return norms;
}

int64_t DecoderLayer::scratch_floats(int64_t num_tokens) const {
  return std::max(attention_ ? attention_->scratch_floats(num_tokens) : mixer_->scratch_floats(num_tokens),
                  moe_ ? moe_->scratch_floats(num_tokens) : mlp_->scratch_floats(num_tokens));
}

void DecoderLayer::Reserve(int64_t max_tokens) const {
  if (attention_) {
    attention_->Reserve(max_tokens);
  } else {
    mixer_->Reserve(max_tokens);
  }
  if (moe_) {
    moe_->Reserve(max_tokens);
  } else {
    mlp_->Reserve(max_tokens);
  }
}

void DecoderLayer::Forward(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables,
                           LayerScratch& scratch, float* hidden) {
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  auto* normed = scratch.normed.as<float>();
  auto* delta = scratch.delta.as<float>();
  auto* inner = scratch.inner.as<float>();
  const float* x = hidden;
  const auto norm_input = [&](const Norms& norms) {
    if (!norms.in) return;
    norms.in->Forward(hidden, num_tokens, normed);
    x = normed;
  };
  norm_input(attention_norms_);
  Mix(input, cache, tables, x, inner, delta);
  if (parallel_) {
    // This norm reads the hidden states without attention's output, so run it before AddDelta.
    norm_input(mlp_norms_);
    AddDelta(attention_norms_, num_tokens, delta, hidden);
  } else {
    AddDelta(attention_norms_, num_tokens, delta, hidden);
    x = hidden;
    norm_input(mlp_norms_);
  }
  RunMlp(input, x, inner, delta);
  AddDelta(mlp_norms_, num_tokens, delta, hidden);
}

void DecoderLayer::Mix(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables, const float* x,
                       float* scratch, float* out) {
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  if (attention_) {
    attention_->Forward(input.attention, cache, tables, x, num_tokens, scratch, out, input.lora_slots);
  } else {
    mixer_->Forward(input.recurrent, cache, x, num_tokens, scratch, out, input.lora_slots);
  }
}

void DecoderLayer::RunMlp(const ModelInput& input, const float* x, float* scratch, float* out) {
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  if (moe_) {
    moe_->Forward(x, num_tokens, scratch, out, input.lora_slots);
  } else {
    mlp_->Forward(x, num_tokens, scratch, out, input.lora_slots);
  }
}

void DecoderLayer::AddDelta(const Norms& norms, int64_t num_tokens, float* delta, float* hidden) const {
  ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
    float* x = hidden + row * hidden_size_;
    float* y = delta + row * hidden_size_;
    if (norms.out) norms.out->Row(y, y);
    if (residual_scale_ == 1.0f) {
      step_.kernels->add(x, y, hidden_size_);
    } else {
      step_.kernels->add_scaled(x, y, residual_scale_, hidden_size_);
    }
    if (norms.sum) norms.sum->Row(x, x);
  });
}

}  // namespace vllm
