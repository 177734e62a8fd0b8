// DecoderModel: one rank's part of the decoder-only transformer that all families share, configured by a DecoderSpec.
// Owned by the rank's Worker; built and called on the rank's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layers/attention/rotary_embedding.h"
#include "engine/layers/linear/lora_embedding.h"
#include "engine/layers/linear/lora_linear.h"
#include "engine/layers/linear/position_embedding.h"
#include "engine/layers/linear/vocab_embedding.h"
#include "engine/layers/norm.h"
#include "engine/models/decoder/decoder_layer.h"
#include "engine/models/decoder/decoder_spec.h"

namespace vllm {

class DecoderModel final : public Model {
 public:
  // Throws ModelError if a tensor is missing or cannot be used, ConfigError if the heads cannot be split over the ranks
  // or a flag conflicts with the model's weights or dtype, and ResourceError if OpenBLAS cannot be loaded.
  DecoderModel(const LoadContext& load, const DecoderSpec& spec);

  const CachedLayers& Layers() const override { return cached_layers_; }
  size_t ReserveScratch(int64_t max_tokens, int64_t max_logits_rows) override;
  void Forward(const ModelInput& input, KVCache& cache, float* hidden) override;
  void ComputeLogits(const float* hidden, int64_t num_rows, float* logits, int64_t logits_stride,
                     const int32_t* lora_slots) override;

 private:
  // Returns the index of a layer's K and V; `earlier` has those of the layers before.
  size_t KVIndex(const AttentionSpec& spec, const std::vector<size_t>& earlier) const;
  void BuildHead(const LoadContext& load, const DecoderSpec& spec, const std::string& prefix);
  void Embed(const ModelInput& input, float* hidden) const;
  void ComputeAngles(const ModelInput& input);

  const StepContext& step_;
  const ModelConfig& config_;
  std::vector<RotaryEmbedding> rotary_;
  std::optional<VocabParallelEmbedding> embed_tokens_;
  std::optional<PositionEmbedding> embed_positions_, embed_token_types_;
  std::optional<Norm> embed_norm_;
  std::optional<ColumnParallelLinear> project_in_, project_out_;  // replicated on every rank
  std::optional<PerLayerInputs> per_layer_inputs_;
  std::optional<AltUpStreams> alt_up_streams_;
  std::vector<std::unique_ptr<DecoderLayer>> layers_;
  std::optional<Norm> norm_;
  std::optional<VocabParallelEmbedding> lm_head_;
  // The adapters' parts of the embedding and of the output projection. If the two are tied, they are separate modules
  // for an adapter, as in PEFT.
  std::optional<LoRAEmbedding> embed_tokens_lora_;
  std::optional<LoRALinear> lm_head_lora_;
  float embedding_scale_, logits_scale_, logits_softcap_;
  CachedLayers cached_layers_;
  LayerScratch scratch_;
  kernels::AlignedBuffer embedded_;             // [max_tokens, embedding width] if the model has project_in
  kernels::AlignedBuffer projected_;            // [max_tokens, embedding width] if the model has project_out
  std::vector<kernels::AlignedBuffer> angles_;  // cos and sin of each rotary table, [max_tokens, half]
  std::vector<float> lm_head_bias_;             // the rank's part, or empty
  kernels::AlignedBuffer query_scales_;         // [max_tokens], if the rotary embedding scales queries
  std::vector<RotaryAngles> tables_;
};

}  // namespace vllm
