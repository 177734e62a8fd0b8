// AltUp (alternating updates, arXiv 2301.13310), as in Gemma 3n: the model has several streams of hidden states, and
// each layer computes only one of them, the active stream. AltUp predicts all streams before the layer and corrects
// them with its result. AltUpStreams makes the streams from the embeddings and merges them at the end. Owned by a
// DecoderLayer and by the DecoderModel. Built at load, then used by the rank's thread.
//
// Streams are [num_streams, num_tokens, hidden_size].
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "engine/layers/norm.h"

namespace vllm {

// Tensor names are relative to the layer's prefix.
struct AltUpSpec {
  int64_t num_streams = 0;
  int64_t active_stream = 0;
  bool scales_output = false;
  NormSpec norm;
  std::string prefix = "altup.";
};

class AltUp {
 public:
  AltUp(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const AltUpSpec& spec);

  // Number of floats in the scratch of Predict and Correct.
  int64_t scratch_floats(int64_t num_tokens) const;
  void Reserve(int64_t max_tokens) const { router_.Reserve(max_tokens); }
  // Returns the active stream.
  float* Active(float* streams, int64_t num_tokens) const {
    return streams + spec_.active_stream * num_tokens * hidden_size_;
  }
  // Replaces the streams with their predictions: each is added to a linear combination of all streams. `normed` is
  // scratch of [num_tokens, hidden_size].
  void Predict(int64_t num_tokens, float* normed, float* scratch, float* streams) const;
  // Adds multiples of activated - active stream to all streams. activated: [num_tokens, hidden_size].
  void Correct(const float* activated, int64_t num_tokens, float* normed, float* scratch, float* streams) const;
  // Writes the active stream, multiplied by correct_output_scale if the model has it, to out, [num_tokens,
  // hidden_size].
  void ScaleOutput(int64_t num_tokens, float* streams, float* out) const;
  // Adds delta, [num_tokens, hidden_size], to all streams except the first.
  void AddToOthers(const float* delta, int64_t num_tokens, float* streams) const;

 private:
  // Fills modalities, [num_tokens, num_streams]: the tanh of the router's output for x, [num_tokens, hidden_size].
  void Route(const float* x, int64_t num_tokens, float* normed, float* modalities) const;

  const StepContext& step_;
  AltUpSpec spec_;
  int64_t hidden_size_;
  ColumnParallelLinear router_;      // replicated on every rank
  std::vector<float> router_norm_;   // [hidden_size]
  std::vector<float> prediction_;    // [num_streams, num_streams, num_streams]: output stream, input stream, modality
  std::vector<float> correction_;    // [num_streams, num_streams]: stream, modality
  std::vector<float> output_scale_;  // [hidden_size] or empty
};

// Tensor names are relative to the decoder's prefix.
struct AltUpStreamsSpec {
  int64_t num_streams = 0;
  std::string projections = "altup_projections.";
  std::string unembed_projections = "altup_unembed_projections.";
};

class AltUpStreams {
 public:
  AltUpStreams(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
               const AltUpStreamsSpec& spec);

  int64_t num_streams() const { return static_cast<int64_t>(projections_.size()) + 1; }
  void Reserve(int64_t max_tokens) const;
  // Fills the streams: the first is hidden, [num_tokens, hidden_size]. The others are projections of it, scaled to the
  // same magnitude.
  void Expand(const float* hidden, int64_t num_tokens, float* streams, const int32_t* lora_slots) const;
  // Writes the mean of the first stream and of projections of the others, scaled to its magnitude. Overwrites delta,
  // [num_tokens, hidden_size].
  void Merge(const float* streams, int64_t num_tokens, float* delta, float* hidden, const int32_t* lora_slots) const;

 private:
  // Computes y = projection(x) for rows of hidden_size elements, scaled to the magnitude of `target`.
  void Project(const ColumnParallelLinear& projection, const float* x, const float* target, int64_t num_tokens,
               float* y, const int32_t* lora_slots) const;

  const StepContext& step_;
  int64_t hidden_size_;
  Shard shard_;  // the rank's outputs of the projections
  std::deque<ColumnParallelLinear> projections_, unembed_projections_;
};

}  // namespace vllm
