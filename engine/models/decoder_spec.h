// DecoderSpec: everything in which one decoder family differs from another: tensor names, norms and where they stand,
// projections, positions, multipliers. A family's file fills one from a ModelConfig; decoder.h runs it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/model_config.h"
#include "engine/layers/attention/decoder_attention.h"
#include "engine/layers/mlp/mlp.h"
#include "engine/layers/mlp/sparse_moe.h"
#include "engine/layers/norm.h"

namespace vllm {

// A block is attention or MLP: x += out_norm(block(in_norm(x))), x = sum_norm(x). A norm without a name is not there.
struct BlockSpec {
  std::string prefix;  // of the block's tensors, after the layer's
  std::string in_norm;
  std::string out_norm;
  std::string sum_norm;
};

// Names follow the layer's prefix.
struct LayerSpec {
  BlockSpec attention_block{"self_attn.", "input_layernorm", "", ""};
  AttentionSpec attention;
  BlockSpec mlp_block{"mlp.", "post_attention_layernorm", "", ""};
  MlpSpec mlp;
  std::optional<MoeSpec> moe;  // in place of mlp
  // Both blocks read the layer's input: x += attention(in_norm(x)) + mlp(in_norm(x)). An MLP block without a norm then
  // reads what attention's norm gave.
  bool parallel = false;
};

struct DecoderSpec {
  // What may stand before the decoder's names; the first under which the embedding is found counts.
  std::vector<std::string> prefixes = {"model."};
  std::string embed_tokens = "embed_tokens";
  std::string layers = "layers.";
  std::string final_norm = "norm";  // empty: none
  NormSpec norm;                    // every norm but those on queries and keys
  std::string embed_positions;      // learned positions; empty: none
  int64_t position_offset = 0;
  std::string project_in;  // OPT: from the embedding's width to the model's, and back; empty: none
  std::string project_out;
  double embedding_scale = 1.0;
  double residual_scale = 1.0;  // of what a block adds
  double logits_scale = 1.0;
  double logits_softcap = 0.0;  // 0: none
  std::vector<LayerSpec> layer;
};

// The decoder of Llama with what the config says of biases, windows, rotation, multipliers and caps: what families
// start from.
DecoderSpec BaseDecoderSpec(const ModelConfig& config);
// The config's experts, each an MLP like `mlp` but for its size.
MoeSpec BaseMoeSpec(const ModelConfig& config, const MlpSpec& mlp);
// `value` as a number of the type.
double RoundTo(DType dtype, double value);

}  // namespace vllm
