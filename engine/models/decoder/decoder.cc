#include "engine/models/decoder/decoder.h"

#include <algorithm>
#include <utility>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

kernels::AlignedBuffer Floats(int64_t rows, int64_t columns) {
  return kernels::AlignedBuffer(static_cast<size_t>(rows * columns) * sizeof(float));
}

// Returns the first prefix under which the checkpoint has the embedding, or spec.prefixes.front() if there is none.
std::string FindPrefix(const WeightSource& weights, const DecoderSpec& spec) {
  for (const std::string& prefix : spec.prefixes) {
    if (weights.Contains(prefix + spec.embed_tokens + ".weight")) return prefix;
  }
  return spec.prefixes.front();
}

// Returns the name of the embedding without ".weight".
std::string EmbeddingName(const WeightSource& weights, const DecoderSpec& spec, const std::string& prefix) {
  const std::string old_name = prefix + spec.old_embed_tokens;
  return !spec.old_embed_tokens.empty() && weights.Contains(old_name + ".weight") ? old_name
                                                                                  : prefix + spec.embed_tokens;
}

int64_t EmbeddingWidth(const ModelConfig& config) {
  return config.word_embed_proj_dim > 0 ? config.word_embed_proj_dim : config.hidden_size;
}

}  // namespace

DecoderModel::DecoderModel(const LoadContext& load, const DecoderSpec& spec)
    : step_(load.step),
      config_(load.config.model),
      embedding_scale_(static_cast<float>(spec.embedding_scale)),
      logits_scale_(static_cast<float>(spec.logits_scale)),
      logits_softcap_(static_cast<float>(spec.logits_softcap)) {
  const std::string prefix = FindPrefix(load.weights, spec);
  const int64_t max_tokens = load.config.scheduler.max_num_batched_tokens;
  BuildHead(load, spec, prefix);
  load.weights.DropPages();
  if (!spec.embed_positions.empty()) {
    embed_positions_.emplace(load, prefix + spec.embed_positions + ".weight", config_.max_position_embeddings,
                             spec.position_offset, config_.hidden_size);
  }
  if (!spec.embed_token_types.empty()) {
    embed_token_types_.emplace(load, prefix + spec.embed_token_types + ".weight", config_.type_vocab_size, 0,
                               config_.hidden_size);
  }
  if (!spec.embed_norm.empty()) embed_norm_.emplace(load, prefix + spec.embed_norm, config_.hidden_size, spec.norm);
  int64_t inner = 0;
  int num_tables = 0;
  LoadProgress* const progress = load.config.load.progress.get();
  if (progress != nullptr) progress->num_layers += static_cast<int64_t>(spec.layer.size());
  if (spec.alt_up_streams) alt_up_streams_.emplace(load, config_, prefix, *spec.alt_up_streams);
  if (spec.per_layer_inputs) per_layer_inputs_.emplace(load, config_, prefix, *spec.per_layer_inputs);
  // [num_layers] index in cached_layers_.attention of the K and V that the layer reads, or in cached_layers_.encoder
  std::vector<size_t> kv_index;
  for (size_t i = 0; i < spec.layer.size(); ++i) {
    const std::string name = prefix + spec.layers + std::to_string(i) + ".";
    LayerSpec layer = spec.layer[i];
    if (!spec.relative_bias.empty()) layer.attention.relative_bias = prefix + spec.relative_bias;
    kv_index.push_back(KVIndex(layer.attention, kv_index));
    layers_.push_back(std::make_unique<DecoderLayer>(load, spec, layer, kv_index.back(), cached_layers_, name));
    load.weights.DropPages();
    if (progress != nullptr) ++progress->num_loaded_layers;
    inner = std::max(inner, layers_.back()->scratch_floats(max_tokens));
    num_tables = std::max(num_tables, spec.layer[i].attention.rotary_table + 1);
  }
  if (num_tables > 0) rotary_.emplace_back(config_);
  if (num_tables > 1) rotary_.push_back(RotaryEmbedding::Local(config_));
  for (const RotaryEmbedding& rotary : rotary_) {
    angles_.push_back(Floats(max_tokens, rotary.half()));
    angles_.push_back(Floats(max_tokens, rotary.half()));
    tables_.push_back({angles_.end()[-2].as<float>(), angles_.back().as<float>(), rotary.half(), nullptr});
    if (!rotary.scales_queries()) continue;
    query_scales_ = Floats(max_tokens, 1);
    tables_.back().query_scales = query_scales_.as<float>();
  }
  scratch_.normed = Floats(max_tokens, config_.hidden_size);
  scratch_.delta = Floats(max_tokens, config_.hidden_size);
  scratch_.inner = Floats(1, inner);
  if (alt_up_streams_) {
    scratch_.streams = Floats(max_tokens, alt_up_streams_->num_streams() * config_.hidden_size);
    scratch_.activated = Floats(max_tokens, config_.hidden_size);
    scratch_.laurel = Floats(max_tokens, config_.hidden_size);
  }
  if (spec.per_layer_inputs) scratch_.per_layer_inputs = Floats(max_tokens, spec.per_layer_inputs->total_size());
}

size_t DecoderModel::KVIndex(const AttentionSpec& spec, const std::vector<size_t>& earlier) const {
  if (spec.look_ahead > 0) {
    const std::vector<KVCacheSpec>& shapes = cached_layers_.encoder;
    const auto same = std::ranges::find(shapes, spec.sliding_window, &KVCacheSpec::sliding_window);
    return static_cast<size_t>(same - shapes.begin());
  }
  return spec.kv_source_layer < 0 ? cached_layers_.attention.size()
                                  : earlier.at(static_cast<size_t>(spec.kv_source_layer));
}

void DecoderModel::BuildHead(const LoadContext& load, const DecoderSpec& spec, const std::string& prefix) {
  const int64_t width = EmbeddingWidth(config_);
  std::string embedding = EmbeddingName(load.weights, spec, prefix) + ".weight";
  std::string head = "lm_head.weight";
  const std::string prefixed_head = config_.weight_prefix + head;
  for (const std::string& other : {prefixed_head, spec.old_lm_head + ".weight"}) {
    if (!load.weights.Contains(head) && load.weights.Contains(other)) head = other;
  }
  // Some exporters store a tied matrix only under the name of lm_head.
  if (config_.tie_word_embeddings && !load.weights.Contains(embedding) && load.weights.Contains(head)) {
    embedding = head;
  }
  embed_tokens_.emplace(load, config_, embedding, config_.vocab_size, width);
  // Multimodal configs set tie_word_embeddings in different places or not at all. In a multimodal checkpoint, the
  // embedding is therefore also tied if there is no lm_head.
  const bool is_text_part = !config_.weight_prefix.empty();
  if (!config_.tie_word_embeddings && (!is_text_part || load.weights.Contains(head))) {
    lm_head_.emplace(load, config_, head, config_.vocab_size, width);
  }
  const Shard& vocab = embed_tokens_->shard();
  if (config_.lm_head_bias) lm_head_bias_ = LoadFloats(load.weights, "lm_head.bias", config_.vocab_size, vocab);
  if (load.lora != nullptr) load.lora->SetTiedHead(embedding);
  embed_tokens_lora_.emplace(load, prefix + spec.embed_tokens, config_.vocab_size, width);
  const std::vector<OutputSlice> head_slices = {{"lm_head", config_.vocab_size, vocab}};
  lm_head_lora_.emplace(load, LoRALinear::Layer{.slices = head_slices, .in_features = width});
  if (!spec.final_norm.empty()) {
    norm_.emplace(load, prefix + spec.final_norm, config_.hidden_size, spec.norm);
  }
  if (spec.project_in.empty()) return;
  const int64_t max_tokens = load.config.scheduler.max_num_batched_tokens;
  project_in_.emplace(
      load, config_, width,
      std::vector<OutputSlice>{{prefix + spec.project_in, config_.hidden_size, {0, config_.hidden_size}}}, false);
  project_out_.emplace(load, config_, config_.hidden_size,
                       std::vector<OutputSlice>{{prefix + spec.project_out, width, {0, width}}}, false);
  embedded_ = Floats(max_tokens, width);
  projected_ = Floats(max_tokens, width);
}

size_t DecoderModel::ReserveScratch(int64_t max_tokens, int64_t max_logits_rows) {
  if (project_in_) {
    project_in_->Reserve(max_tokens);
    project_out_->Reserve(max_logits_rows);
  }
  if (per_layer_inputs_) per_layer_inputs_->Reserve(max_tokens);
  if (alt_up_streams_) alt_up_streams_->Reserve(max_tokens);
  for (const std::unique_ptr<DecoderLayer>& layer : layers_) layer->Reserve(max_tokens);
  embed_tokens_->Reserve(lm_head_ ? 1 : max_logits_rows);
  if (lm_head_) lm_head_->Reserve(max_logits_rows);
  lm_head_lora_->Reserve(max_logits_rows);
  size_t bytes = scratch_.normed.size_bytes() + scratch_.delta.size_bytes() + scratch_.inner.size_bytes() +
                 embedded_.size_bytes() + projected_.size_bytes() + scratch_.per_layer_inputs.size_bytes() +
                 scratch_.streams.size_bytes() + scratch_.activated.size_bytes() + scratch_.laurel.size_bytes() +
                 query_scales_.size_bytes() + (per_layer_inputs_ ? per_layer_inputs_->size_bytes() : 0);
  for (const kernels::AlignedBuffer& angles : angles_) bytes += angles.size_bytes();
  return bytes;
}

void DecoderModel::Embed(const ModelInput& input, float* hidden) const {
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  if (project_in_) {
    auto* embedded = embedded_.as<float>();
    embed_tokens_->Embed(input.token_ids, embedded);
    embed_tokens_lora_->Add(step_, input.lora_slots, input.token_ids, embedded);
    project_in_->Forward(embedded, EmbeddingWidth(config_), num_tokens, hidden, config_.hidden_size, input.lora_slots);
  } else {
    embed_tokens_->Embed(input.token_ids, hidden);
    embed_tokens_lora_->Add(step_, input.lora_slots, input.token_ids, hidden);
  }
  if (embedding_scale_ != 1.0f) {
    ForEachRow(step_, num_tokens, config_.hidden_size, [&](int64_t row) {
      step_.kernels->scale(hidden + row * config_.hidden_size, embedding_scale_, config_.hidden_size);
    });
  }
  if (embed_positions_) embed_positions_->AddTo(input.positions, hidden);
  if (embed_token_types_) embed_token_types_->AddTo(input.token_type_ids, hidden);
  if (embed_norm_) embed_norm_->Forward(hidden, num_tokens, hidden);
}

void DecoderModel::ComputeAngles(const ModelInput& input) {
  for (size_t i = 0; i < rotary_.size(); ++i) {
    rotary_[i].Angles(step_, input.positions, angles_[2 * i].as<float>(), angles_[2 * i + 1].as<float>());
    if (rotary_[i].scales_queries()) rotary_[i].QueryScales(input.positions, query_scales_.as<float>());
  }
}

void DecoderModel::Forward(const ModelInput& input, KVCache& cache, float* hidden) {
  Embed(input, hidden);
  if (per_layer_inputs_) {
    per_layer_inputs_->Forward(input.token_ids, hidden, scratch_.per_layer_inputs.as<float>(), input.lora_slots);
  }
  ComputeAngles(input);
  float* states = hidden;
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  if (alt_up_streams_) {
    states = scratch_.streams.as<float>();
    alt_up_streams_->Expand(hidden, num_tokens, states, input.lora_slots);
  }
  for (const std::unique_ptr<DecoderLayer>& layer : layers_) layer->Forward(input, cache, tables_, scratch_, states);
  if (alt_up_streams_) {
    alt_up_streams_->Merge(states, num_tokens, scratch_.delta.as<float>(), hidden, input.lora_slots);
  }
  if (norm_) norm_->Forward(hidden, num_tokens, hidden);
}

void DecoderModel::ComputeLogits(const float* hidden, int64_t num_rows, float* logits, int64_t logits_stride,
                                 const int32_t* lora_slots) {
  const float* x = hidden;
  if (project_out_) {
    const int64_t width = EmbeddingWidth(config_);
    project_out_->Forward(hidden, config_.hidden_size, num_rows, projected_.as<float>(), width, lora_slots);
    x = projected_.as<float>();
  }
  (lm_head_ ? *lm_head_ : *embed_tokens_).Logits(x, num_rows, logits, logits_stride);
  const Shard& shard = embed_tokens_->shard();
  lm_head_lora_->Add(lora_slots, x, EmbeddingWidth(config_), num_rows, logits + shard.begin, logits_stride);
  if (logits_scale_ == 1.0f && logits_softcap_ == 0.0f && lm_head_bias_.empty()) return;
  ForEachRow(step_, num_rows, 8 * shard.count, [&](int64_t row) {
    float* own = logits + row * logits_stride + shard.begin;
    if (!lm_head_bias_.empty()) step_.kernels->add(own, lm_head_bias_.data(), shard.count);
    if (logits_scale_ != 1.0f) step_.kernels->scale(own, logits_scale_, shard.count);
    if (logits_softcap_ != 0.0f) step_.kernels->soft_cap(own, logits_softcap_, shard.count);
  });
}

}  // namespace vllm
