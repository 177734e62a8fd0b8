// Per-layer inputs (Gemma 3n, Gemma 4): every layer has its own small embedding of each token. PerLayerInputs computes
// them for all layers once per step. It adds a row of a large table, chosen by the token, to a projection of the
// token's embedding. A PerLayerInputBlock computes what a layer's part adds to the hidden states. Owned by the
// DecoderModel and by its layers. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/layers/linear/gathered_linear.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "engine/layers/norm.h"
#include "engine/layers/per_layer_input/mapped_table.h"
#include "kernels/activation.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

// Tensor names are relative to the decoder's prefix.
struct PerLayerInputsSpec {
  int64_t size = 0;  // of the embedding of one layer
  int64_t num_layers = 0;
  int64_t vocab_size = 0;  // rows of the table
  double projection_scale = 1.0;
  double table_scale = 1.0;
  double sum_scale = 1.0;
  NormSpec norm;
  std::string embed_tokens = "embed_tokens_per_layer";
  std::string projection = "per_layer_model_projection";
  std::string projection_norm = "per_layer_projection_norm";

  int64_t total_size() const { return size * num_layers; }
};

class PerLayerInputs {
 public:
  PerLayerInputs(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                 const PerLayerInputsSpec& spec);

  void Reserve(int64_t max_tokens) const { projection_.Reserve(max_tokens); }
  size_t size_bytes() const { return table_rows_.size_bytes(); }
  // Writes out, [num_tokens, num_layers, size], complete on every rank:
  //   (norm(projection(hidden) * projection_scale) + table[token] * table_scale) * sum_scale
  // hidden: [num_tokens, hidden_size], the scaled embeddings; lora_slots: [num_tokens] or null. Tokens that the table
  // does not contain use its row 0, as in transformers.
  void Forward(std::span<const int32_t> token_ids, const float* hidden, float* out, const int32_t* lora_slots) const;

 private:
  const StepContext& step_;
  PerLayerInputsSpec spec_;
  int64_t hidden_size_;
  Shard shard_;  // the rank's part of the projection's output
  ColumnParallelLinear projection_;
  Norm norm_;
  MappedTable table_;
  kernels::AlignedBuffer table_rows_;  // [num_threads, num_layers * size]
};

// Tensor names are relative to the layer's prefix.
struct PerLayerInputBlockSpec {
  int64_t size = 0;
  int64_t offset = 0;  // of the layer's embedding in a row of the inputs
  int64_t stride = 0;  // size of a row of the inputs
  kernels::Activation activation = kernels::Activation::kGeluTanh;
  NormSpec norm;
  std::string gate = "per_layer_input_gate";
  std::string projection = "per_layer_projection";
  std::string out_norm = "post_per_layer_input_norm";
};

class PerLayerInputBlock {
 public:
  PerLayerInputBlock(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                     const PerLayerInputBlockSpec& spec);

  int64_t scratch_floats(int64_t num_tokens) const { return num_tokens * shard_.count; }
  void Reserve(int64_t max_tokens) const {
    gate_.Reserve(max_tokens);
    projection_.Reserve(max_tokens);
  }
  // out = norm(projection(activation(gate(x)) * inputs)). x, out: [num_tokens, hidden_size]; inputs: [num_tokens,
  // stride]; scratch: [scratch_floats(num_tokens)]; lora_slots: [num_tokens] or null.
  void Forward(const float* inputs, const float* x, int64_t num_tokens, float* scratch, float* out,
               const int32_t* lora_slots) const;

 private:
  const StepContext& step_;
  PerLayerInputBlockSpec spec_;
  int64_t hidden_size_;
  Shard shard_;
  ColumnParallelLinear gate_;
  GatheredLinear projection_;
  Norm norm_;
};

}  // namespace vllm
