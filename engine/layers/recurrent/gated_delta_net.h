// GatedDeltaNet: linear attention with the gated delta rule (arXiv 2412.06464), as in Qwen3-Next and Qwen3.5. Each
// value head has a matrix state [key_dim, value_dim]. Several value heads share the query and key of one key head.
// Value heads are split over the ranks. Owned by a DecoderLayer. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/load_context.h"
#include "engine/layers/recurrent/conv_mixer.h"
#include "engine/layers/recurrent/decay_weights.h"

namespace vllm {

// Tensor names are relative to the layer's prefix.
struct GatedDeltaNetSpec {
  // in_proj_qkvz has, for each key head, its query, its key, its values and their z. Otherwise, in_proj_qkv has all
  // queries, then all keys, then all values, and in_proj_z has all z.
  bool fused_qkvz = false;
  // in_proj_ba has, for each key head, the b and then the a of its value heads. Otherwise, they are in in_proj_b and
  // in_proj_a.
  bool fused_ba = false;
  int64_t num_key_heads = 0;
  int64_t num_value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t num_taps = 0;  // of the convolution over queries, keys and values
  // Value head i uses key head i % num_key_heads, as GGUF files of Qwen3.5 order them. Otherwise, consecutive value
  // heads share a key head.
  bool tiled_value_heads = false;
  kernels::Activation activation = kernels::Activation::kSilu;  // of the convolution
  double norm_eps = 1e-6;
};

class GatedDeltaNet final : public ConvMixer {
 public:
  // `layer`: among the layers with recurrent state. Throws as ColumnParallelLinear does, and ConfigError if the number
  // of ranks does not divide the number of value heads.
  GatedDeltaNet(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
                const GatedDeltaNetSpec& spec);

  RecurrentStateSpec state() const override;
  int64_t scratch_floats(int64_t num_tokens) const override;
  void Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x, int64_t num_tokens,
               float* scratch, float* out, const int32_t* lora_slots) override;

 private:
  // The heads of this rank. A key head may be on several ranks.
  struct Heads {
    Shard values;
    std::vector<int64_t> keys;                    // ascending, in the whole model
    std::vector<std::vector<int64_t>> values_of;  // [keys.size()] the value heads, counted from values.begin
  };
  static Heads MakeHeads(const GatedDeltaNetSpec& spec, int rank, int world_size);
  static std::vector<OutputSlice> InputSlices(const std::string& prefix, const GatedDeltaNetSpec& spec,
                                              const Heads& heads);
  static std::vector<Shard> ConvChannels(const GatedDeltaNetSpec& spec, const Heads& heads);
  static Options MixerOptions(const LoadContext& load, const std::string& prefix, const GatedDeltaNetSpec& spec,
                              const Heads& heads);
  GatedDeltaNet(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
                const GatedDeltaNetSpec& spec, const Heads& heads);

  int64_t num_key_heads() const { return static_cast<int64_t>(heads_.keys.size()); }
  // The order of a row of in_proj's output: the inputs of the convolution (queries, keys, values), b, a, z.
  int64_t b_offset() const { return conv().num_channels(); }
  int64_t a_offset() const { return b_offset() + heads_.values.count; }
  int64_t z_offset() const { return num_inputs(); }
  // Computes the value heads of key head `key` for all tokens of a sequence, and moves and saves their states.
  void RunKeyHead(const RecurrentSequence& sequence, const SequenceInputs& inputs, KVCache& cache, int64_t key,
                  float* scratch, float* attended) const;

  GatedDeltaNetSpec spec_;
  Heads heads_;
  DecayWeights decay_;              // of the value heads
  std::vector<float> norm_weight_;  // [value_dim]
};

}  // namespace vllm
