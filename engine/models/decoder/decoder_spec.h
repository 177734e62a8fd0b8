// DecoderSpec: the properties in which decoder families differ: tensor names, norms and their positions, projections,
// position encodings and multipliers. Each family's source file makes one from a ModelConfig, and DecoderModel builds
// the decoder from it. Encoders are decoders whose attention is not causal. Plain values and pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/model_config.h"
#include "engine/layers/alt_up/alt_up.h"
#include "engine/layers/alt_up/laurel.h"
#include "engine/layers/attention/decoder_attention.h"
#include "engine/layers/attention/mla_attention.h"
#include "engine/layers/mlp/mlp.h"
#include "engine/layers/mlp/mlp_with_experts.h"
#include "engine/layers/mlp/sparse_moe.h"
#include "engine/layers/norm.h"
#include "engine/layers/per_layer_input/per_layer_inputs.h"
#include "engine/layers/recurrent/gated_delta_net.h"
#include "engine/layers/recurrent/mamba2.h"
#include "engine/layers/recurrent/short_conv.h"

namespace vllm {

// A block is attention (or what replaces it) or MLP: x = sum_norm(x + residual_scale * out_norm(block(in_norm(x)))). A
// norm with an empty name is absent. With residual_out_norm, x is added twice:
// x = sum_norm(x + residual_out_norm(x + block(in_norm(x)))).
struct BlockSpec {
  std::string prefix;  // follows the layer's prefix in the names of the block's tensors, but not of these norms
  std::string in_norm;
  std::string out_norm;
  std::string sum_norm;
  std::string residual_out_norm{};  // REQUIRES: no out_norm, and residual_scale is 1
};

// Falcon-H1: attention and a recurrent mixer read the same input x, and the output of the block is
// attention_out * attention(attention_in * x) + mixer_out * mixer(mixer_in * x).
struct ParallelMixerSpec {
  double attention_in = 1.0;
  double attention_out = 1.0;
  double mixer_in = 1.0;
  double mixer_out = 1.0;
  std::string mixer_prefix;  // follows the layer's prefix in the names of the mixer's tensors
};

// Tensor names are relative to the layer's prefix.
struct LayerSpec {
  bool has_attention_block = true;  // false: the layer has only the MLP block
  bool has_mlp_block = true;
  BlockSpec attention_block{"self_attn.", "input_layernorm", "", ""};
  AttentionSpec attention;
  std::optional<MLASpec> mla;  // replaces attention
  // At most one of these, which replaces attention unless there is a parallel_mixer.
  std::optional<GatedDeltaNetSpec> gated_delta_net;
  std::optional<ShortConvSpec> short_conv;
  std::optional<Mamba2Spec> mamba2;
  std::optional<ParallelMixerSpec> parallel_mixer;
  BlockSpec mlp_block{"mlp.", "post_attention_layernorm", "", ""};
  MlpSpec mlp;
  std::optional<MoeSpec> moe;                             // replaces mlp
  std::optional<MlpWithExpertsSpec> parallel_experts;     // their output is added to that of mlp
  std::optional<PerLayerInputBlockSpec> per_layer_input;  // a third block
  // Gemma 3n: the layer computes one of several streams, and has a branch parallel to attention. REQUIRES: both or
  // none; with them, per_layer_input and no parallel blocks.
  std::optional<AltUpSpec> alt_up;
  std::optional<LaurelSpec> laurel;
  std::string layer_scalar;  // tensor of one element that multiplies the layer's output; empty: none
  // Both blocks read the layer's input: x += attention(in_norm(x)) + mlp(in_norm(x)). An MLP block without in_norm then
  // reads the output of attention's in_norm. REQUIRES: the layer has both.
  bool parallel = false;
};

struct DecoderSpec {
  // Candidate prefixes of the decoder's tensor names. The first one under which the embedding is found is used.
  std::vector<std::string> prefixes = {"model."};
  std::string embed_tokens = "embed_tokens";
  std::string old_embed_tokens;  // its name in older checkpoints; empty: the same
  std::string old_lm_head;       // another name of lm_head; empty: none
  std::string layers = "layers.";
  std::string final_norm = "norm";  // empty: none
  NormSpec norm;                    // kind of all norms except those on queries and keys
  std::string embed_positions;      // learned positions; empty: none
  int64_t position_offset = 0;      // row of position 0 in embed_positions
  std::string embed_token_types;    // BERT: one vector for each type of token; empty: none
  std::string embed_norm;           // a norm of the sum of the embeddings; empty: none
  std::string relative_bias;        // the AttentionSpec::relative_bias of all layers, without the prefix; empty: none
  std::string project_in;           // OPT: projects the embedding width to hidden_size; empty: none
  std::string project_out;          // the reverse, before the output projection
  double embedding_scale = 1.0;
  double residual_scale = 1.0;  // multiplies the output of a block
  double logits_scale = 1.0;
  double logits_softcap = 0.0;  // 0: none
  std::optional<PerLayerInputsSpec> per_layer_inputs;
  std::optional<AltUpStreamsSpec> alt_up_streams;
  std::vector<LayerSpec> layer;
};

// Returns Llama's decoder with the biases, windows, rotation, multipliers and soft caps of the config. All families
// start from it. Throws ModelError if the activation is unknown.
DecoderSpec BaseDecoderSpec(const ModelConfig& config);
// Returns the spec of the config's experts. Each expert is an MLP like `mlp`, but with moe_intermediate_size.
MoeSpec BaseMoeSpec(const ModelConfig& config, const MlpSpec& mlp);
// Returns the spec of the config's Mamba-2 mixers.
Mamba2Spec BaseMamba2Spec(const ModelConfig& config);
// Returns `value` rounded to `dtype`.
double RoundTo(kernels::DType dtype, double value);

}  // namespace vllm
