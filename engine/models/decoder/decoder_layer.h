// DecoderLayer: attention and MLP (or experts) with the norms and residual additions around them, configured by a
// LayerSpec. Owned by the DecoderModel; built and used on the rank's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/layers/recurrent/recurrent_mixer.h"
#include "engine/models/decoder/decoder_spec.h"
#include "engine/models/decoder/model.h"

namespace vllm {

// Scratch buffers of a step. The layers of a rank share them, one layer at a time.
struct LayerScratch {
  kernels::AlignedBuffer normed;            // [max_tokens, hidden_size] input of a block
  kernels::AlignedBuffer delta;             // [max_tokens, hidden_size] output of a block
  kernels::AlignedBuffer inner;             // scratch inside a block, large enough for every layer
  kernels::AlignedBuffer per_layer_inputs;  // [max_tokens, PerLayerInputsSpec::total_size()] if the model has them
  // With AltUp, [num_streams, max_tokens, hidden_size], [max_tokens, hidden_size] and [max_tokens, hidden_size]
  kernels::AlignedBuffer streams, activated, laurel;
};

class DecoderLayer {
 public:
  // `kv_layer` is the index in KVCache of the K and V that the layer reads. Adds the layer's own K and V, or its
  // recurrent state, to `cached`, which has those of the layers before.
  DecoderLayer(const LoadContext& load, const DecoderSpec& decoder, const LayerSpec& spec, size_t kv_layer,
               CachedLayers& cached, const std::string& prefix);

  // Returns the number of floats that LayerScratch::inner needs for `num_tokens` tokens.
  int64_t scratch_floats(int64_t num_tokens) const;
  // Reserves the rank's scratch for Forward with up to `max_tokens` tokens.
  void Reserve(int64_t max_tokens) const;
  // Updates hidden [num_tokens, hidden_size] in place. With AltUp, it is [num_streams, num_tokens, hidden_size].
  void Forward(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables, LayerScratch& scratch,
               float* hidden);

 private:
  void ForwardStreams(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables,
                      LayerScratch& scratch, float* streams);

  struct Norms {
    std::optional<Norm> in, out, sum, residual_out;
  };
  void BuildMlp(const LoadContext& load, const LayerSpec& spec, const std::string& prefix);
  void MakeNorms(const LoadContext& load, const DecoderSpec& decoder, const BlockSpec& block, const std::string& prefix,
                 Norms& norms) const;
  void Mix(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables, const float* x,
           float* scratch, float* out);
  void MixBoth(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables, const float* x,
               float* scratch, float* out);
  bool has_mlp() const { return mlp_ || moe_ || mlp_with_experts_; }
  bool has_attention_block() const { return attention_ || mla_ || mixer_ != nullptr; }
  void RunMlp(const ModelInput& input, const float* x, const float* hidden, float* scratch, float* out);
  // Adds a block's output to the hidden states, with the norms of BlockSpec; overwrites delta.
  void AddDelta(const Norms& norms, int64_t num_tokens, float* delta, float* hidden) const;

  const StepContext& step_;
  int64_t hidden_size_;
  float residual_scale_;
  bool parallel_;
  Norms attention_norms_, mlp_norms_;
  std::unique_ptr<RecurrentMixer> mixer_;
  // Without a mixer_, and without parallel_mixer_, one of these.
  std::optional<DecoderAttention> attention_;
  std::optional<MLAAttention> mla_;
  std::optional<ParallelMixerSpec> parallel_mixer_;  // if there are both mixer_ and attention_
  std::optional<Mlp> mlp_;
  std::optional<SparseMoe> moe_;
  std::optional<MlpWithExperts> mlp_with_experts_;
  std::optional<PerLayerInputBlock> per_layer_input_;
  std::optional<AltUp> alt_up_;
  std::optional<Laurel> laurel_;
  float layer_scalar_ = 1.0f;
};

}  // namespace vllm
