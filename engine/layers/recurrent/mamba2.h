// Mamba2: the state-space mixer of Mamba-2 (arXiv 2405.21060). Each head has a matrix state [state_size, head_dim]. The
// heads of a group share B and C. Heads are split over the ranks. Owned by a DecoderLayer. Built at load, then used by
// the rank's thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/load_context.h"
#include "engine/layers/recurrent/conv_mixer.h"
#include "engine/layers/recurrent/decay_weights.h"

namespace vllm {

// Tensor names: in_proj (rows z, x, B, C, dt), conv1d (channels x, B, C), dt_bias, A_log, D, norm, out_proj.
struct Mamba2Spec {
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t num_groups = 1;
  int64_t state_size = 0;
  int64_t num_taps = 0;
  bool conv_bias = true;
  bool in_bias = false;                                         // of in_proj
  bool out_bias = false;                                        // of out_proj
  kernels::Activation activation = kernels::Activation::kSilu;  // of the convolution
  double min_dt = 0.0;
  double max_dt = 0.0;  // 0: no limit
  // The RMS norm of each group of y * silu(z), or with norm_before_gate of y.
  bool has_norm = true;
  bool norm_before_gate = false;
  double norm_eps = 1e-5;
  // Multiply the z, x, B, C and dt that in_proj computes.
  std::array<double, 5> multipliers = {1.0, 1.0, 1.0, 1.0, 1.0};
};

class Mamba2 final : public ConvMixer {
 public:
  // `layer`: among the layers with recurrent state. Throws as ColumnParallelLinear does, and ConfigError if the number
  // of ranks does not divide the number of heads.
  Mamba2(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
         const Mamba2Spec& spec);

  RecurrentStateSpec state() const override;
  int64_t scratch_floats(int64_t num_tokens) const override;
  void Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x, int64_t num_tokens,
               float* scratch, float* out, const int32_t* lora_slots) override;

 private:
  // Heads of one group that a thread processes together, counted from heads_.begin.
  struct Part {
    int64_t group = 0;  // counted from groups_.begin
    std::vector<int64_t> heads;
  };
  static Options MixerOptions(const LoadContext& load, const std::string& prefix, const Mamba2Spec& spec, Shard heads,
                              Shard groups);
  Mamba2(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
         const Mamba2Spec& spec, Shard heads, Shard groups);
  std::vector<Part> MakeParts() const;

  int64_t heads_per_group() const { return spec_.num_heads / spec_.num_groups; }
  // The order of a row of in_proj's output: the inputs of the convolution (x, B, C), dt, z.
  int64_t dt_offset() const { return conv().num_channels(); }
  int64_t z_offset() const { return num_inputs(); }
  void RunPart(const RecurrentSequence& sequence, const SequenceInputs& inputs, KVCache& cache, const Part& part,
               float* scratch, float* y) const;
  // Applies the multipliers to the output of in_proj.
  void Multiply(int64_t num_tokens, float* rows) const;
  // y [num_tokens, inner()] = norm(y * silu(z)), or norm(y) * silu(z); sums: scratch of [num_tokens, num_heads].
  void Gate(const float* rows, int64_t num_tokens, float* sums, float* y) const;

  Mamba2Spec spec_;
  Shard heads_, groups_;  // groups_: those of the heads, of which the first and the last may also be on other ranks
  DecayWeights decay_;
  std::vector<float> d_;            // [heads_.count]
  std::vector<float> norm_weight_;  // [inner()]
  std::vector<Part> parts_;
};

}  // namespace vllm
