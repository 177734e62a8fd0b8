// LlamaForCausalLM (arXiv 2302.13971): pre-norm decoder with rotary positions, grouped-query attention and a SiLU-gated
// MLP. Tensor names as transformers' checkpoints have them.
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/layers/attention.h"
#include "engine/layers/for_each_row.h"
#include "engine/layers/linear.h"
#include "engine/layers/rms_norm.h"
#include "engine/layers/rotary_embedding.h"
#include "engine/layers/vocab_embedding.h"
#include "engine/models/registry.h"

namespace vllm {

namespace {

// A step's intermediate rows, shared by all layers of a rank.
struct Scratch {
  AlignedBuffer normed;     // [max_tokens, hidden]
  AlignedBuffer qkv;        // [max_tokens, q + k + v]
  AlignedBuffer attention;  // [max_tokens, q]
  AlignedBuffer gate_up;    // [max_tokens, 2 * intermediate]
  AlignedBuffer delta;      // [max_tokens, hidden]
  AlignedBuffer cos, sin;   // [max_tokens, head_dim / 2]
};

AlignedBuffer Floats(int64_t rows, int64_t columns) {
  return AlignedBuffer(static_cast<size_t>(rows * columns) * sizeof(float));
}

class LlamaAttention {
 public:
  LlamaAttention(const ModelBuildContext& build, const std::string& prefix, size_t layer, const HeadShards& shards)
      : rank_(build.rank),
        head_dim_(build.config.model.head_dim),
        q_size_(shards.heads.count * head_dim_),
        kv_size_(shards.kv_heads.count * head_dim_),
        qkv_proj_(build.rank, build.weights, build.config.model, build.config.model.hidden_size,
                  QkvSlices(build.config.model, prefix, shards), build.config.model.attention_bias),
        o_proj_(build.rank, build.weights, build.config.model, prefix + "o_proj", build.config.model.hidden_size,
                build.config.model.num_attention_heads * head_dim_, {shards.heads.begin * head_dim_, q_size_},
                build.config.model.attention_bias),
        attention_(build.rank, layer,
                   {shards.kv_heads.count, head_dim_, build.config.model.layers[layer].sliding_window},
                   shards.heads.count, static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim_)))) {}

  // x: [num_tokens, hidden], normed; out likewise.
  void Forward(const ModelInput& input, KvCache& cache, const float* x, int64_t hidden_size, Scratch& scratch,
               float* out) {
    const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
    auto* qkv = scratch.qkv.as<float>();
    const int64_t stride = q_size_ + 2 * kv_size_;
    qkv_proj_.Forward(x, hidden_size, num_tokens, qkv, stride);
    const int64_t half = head_dim_ / 2;
    ForEachRow(rank_, num_tokens, q_size_ + kv_size_, [&](int64_t row) {
      const float* cos = scratch.cos.as<float>() + row * half;
      const float* sin = scratch.sin.as<float>() + row * half;
      // The query heads and then the key heads lie side by side.
      float* heads = qkv + row * stride;
      for (int64_t at = 0; at < q_size_ + kv_size_; at += head_dim_) rank_.kernels->rotary(heads + at, cos, sin, half);
    });
    auto* attended = scratch.attention.as<float>();
    attention_.Forward(input.attention, cache, qkv, qkv + q_size_, qkv + q_size_ + kv_size_, stride, attended, q_size_);
    o_proj_.Forward(attended, q_size_, num_tokens, out);
  }

 private:
  static std::vector<OutputSlice> QkvSlices(const ModelConfig& config, const std::string& prefix,
                                            const HeadShards& shards) {
    const int64_t dim = config.head_dim;
    const Shard q{shards.heads.begin * dim, shards.heads.count * dim};
    const Shard kv{shards.kv_heads.begin * dim, shards.kv_heads.count * dim};
    return {{prefix + "q_proj", config.num_attention_heads * dim, q},
            {prefix + "k_proj", config.num_key_value_heads * dim, kv},
            {prefix + "v_proj", config.num_key_value_heads * dim, kv}};
  }

  const RankContext& rank_;
  int64_t head_dim_, q_size_, kv_size_;
  ColumnParallelLinear qkv_proj_;
  RowParallelLinear o_proj_;
  Attention attention_;
};

class LlamaMlp {
 public:
  LlamaMlp(const ModelBuildContext& build, const std::string& prefix)
      : rank_(build.rank),
        shard_(ShardOf(build.config.model.intermediate_size, build.rank.rank(), build.rank.size())),
        gate_up_proj_(build.rank, build.weights, build.config.model, build.config.model.hidden_size,
                      {{prefix + "gate_proj", build.config.model.intermediate_size, shard_},
                       {prefix + "up_proj", build.config.model.intermediate_size, shard_}},
                      build.config.model.mlp_bias),
        down_proj_(build.rank, build.weights, build.config.model, prefix + "down_proj", build.config.model.hidden_size,
                   build.config.model.intermediate_size, shard_, build.config.model.mlp_bias) {}

  void Forward(int64_t num_tokens, const float* x, int64_t hidden_size, Scratch& scratch, float* out) {
    auto* gate_up = scratch.gate_up.as<float>();
    const int64_t size = shard_.count;
    gate_up_proj_.Forward(x, hidden_size, num_tokens, gate_up, 2 * size);
    ForEachRow(rank_, num_tokens, 4 * size, [&](int64_t row) {
      float* gate = gate_up + row * 2 * size;
      rank_.kernels->silu_and_mul(gate, gate + size, size, gate);
    });
    down_proj_.Forward(gate_up, 2 * size, num_tokens, out);
  }

 private:
  const RankContext& rank_;
  Shard shard_;
  ColumnParallelLinear gate_up_proj_;
  RowParallelLinear down_proj_;
};

struct LlamaLayer {
  LlamaLayer(const ModelBuildContext& build, const std::string& prefix, size_t layer, const HeadShards& shards)
      : input_norm(build.rank, build.weights, prefix + "input_layernorm", build.config.model.hidden_size,
                   build.config.model.rms_norm_eps),
        attention(build, prefix + "self_attn.", layer, shards),
        post_attention_norm(build.rank, build.weights, prefix + "post_attention_layernorm",
                            build.config.model.hidden_size, build.config.model.rms_norm_eps),
        mlp(build, prefix + "mlp.") {}

  RmsNorm input_norm;
  LlamaAttention attention;
  RmsNorm post_attention_norm;
  LlamaMlp mlp;
};

class LlamaForCausalLM final : public Model {
 public:
  explicit LlamaForCausalLM(const ModelBuildContext& build)
      : rank_(build.rank),
        config_(build.config.model),
        rotary_(config_),
        embed_tokens_(build.rank, build.weights, config_, EmbeddingName(build), config_.vocab_size,
                      config_.hidden_size),
        norm_(build.rank, build.weights, "model.norm", config_.hidden_size, config_.rms_norm_eps) {
    if (config_.hidden_act != "silu" && config_.hidden_act != "swish") {
      throw ModelError("config.json " + config_.folder + ": hidden_act: not supported by " + config_.architecture +
                       " (" + config_.hidden_act + ")");
    }
    if (config_.head_dim % 2 != 0) {
      throw ModelError("config.json " + config_.folder + ": head_dim: must be even (" +
                       std::to_string(config_.head_dim) + ")");
    }
    const HeadShards shards = ShardHeads(config_, rank_.rank(), rank_.size());
    for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      layers_.push_back(std::make_unique<LlamaLayer>(build, prefix, static_cast<size_t>(layer), shards));
      kv_layers_.push_back(
          {shards.kv_heads.count, config_.head_dim, config_.layers[static_cast<size_t>(layer)].sliding_window});
    }
    if (!config_.tie_word_embeddings) {
      lm_head_.emplace(build.rank, build.weights, config_, "lm_head.weight", config_.vocab_size, config_.hidden_size);
    }
    const int64_t max_tokens = build.config.scheduler.max_num_batched_tokens;
    const int64_t q_size = shards.heads.count * config_.head_dim;
    const int64_t kv_size = shards.kv_heads.count * config_.head_dim;
    scratch_.normed = Floats(max_tokens, config_.hidden_size);
    scratch_.qkv = Floats(max_tokens, q_size + 2 * kv_size);
    scratch_.attention = Floats(max_tokens, q_size);
    scratch_.gate_up = Floats(max_tokens, 2 * ShardOf(config_.intermediate_size, rank_.rank(), rank_.size()).count);
    scratch_.delta = Floats(max_tokens, config_.hidden_size);
    scratch_.cos = Floats(max_tokens, rotary_.half());
    scratch_.sin = Floats(max_tokens, rotary_.half());
  }

  const std::vector<KvLayerSpec>& KvLayers() const override { return kv_layers_; }

  void Forward(const ModelInput& input, KvCache& cache, float* hidden) override {
    const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
    const int64_t size = config_.hidden_size;
    auto* normed = scratch_.normed.as<float>();
    auto* delta = scratch_.delta.as<float>();
    embed_tokens_.Embed(input.token_ids, hidden);
    rotary_.Angles(rank_, input.positions, scratch_.cos.as<float>(), scratch_.sin.as<float>());
    for (const std::unique_ptr<LlamaLayer>& layer : layers_) {
      layer->input_norm.Forward(hidden, num_tokens, normed);
      layer->attention.Forward(input, cache, normed, size, scratch_, delta);
      AddRows(hidden, delta, num_tokens);
      layer->post_attention_norm.Forward(hidden, num_tokens, normed);
      layer->mlp.Forward(num_tokens, normed, size, scratch_, delta);
      AddRows(hidden, delta, num_tokens);
    }
    norm_.Forward(hidden, num_tokens, hidden);
  }

  void ComputeLogits(const float* hidden, int64_t num_rows, float* logits, int64_t logits_stride) override {
    (lm_head_ ? *lm_head_ : embed_tokens_).Logits(hidden, num_rows, logits, logits_stride);
  }

 private:
  // Some exporters drop the duplicate of a tied pair and keep lm_head's name.
  static std::string EmbeddingName(const ModelBuildContext& build) {
    const std::string embedding = "model.embed_tokens.weight";
    const std::string head = "lm_head.weight";
    const bool use_head =
        build.config.model.tie_word_embeddings && !build.weights.Contains(embedding) && build.weights.Contains(head);
    return use_head ? head : embedding;
  }

  void AddRows(float* x, const float* y, int64_t num_rows) const {
    ForEachRow(rank_, num_rows, config_.hidden_size, [&](int64_t row) {
      rank_.kernels->add(x + row * config_.hidden_size, y + row * config_.hidden_size, config_.hidden_size);
    });
  }

  const RankContext& rank_;
  const ModelConfig& config_;
  RotaryEmbedding rotary_;
  VocabParallelEmbedding embed_tokens_;
  std::vector<std::unique_ptr<LlamaLayer>> layers_;
  RmsNorm norm_;
  std::optional<VocabParallelEmbedding> lm_head_;
  std::vector<KvLayerSpec> kv_layers_;
  Scratch scratch_;
};

std::unique_ptr<Model> BuildLlama(const ModelBuildContext& build) { return std::make_unique<LlamaForCausalLM>(build); }

const ModelRegistration kLlama("LlamaForCausalLM", BuildLlama);
// The same decoder; its configs bring a sliding window.
const ModelRegistration kMistral("MistralForCausalLM", BuildLlama);

}  // namespace

}  // namespace vllm
