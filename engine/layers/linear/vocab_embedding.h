// VocabParallelEmbedding: the rank's rows of the token embedding, and of the output projection, which is the same
// matrix when the checkpoint ties them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/layers/linear/linear_weight.h"
#include "engine/layers/load_context.h"

namespace vllm {

class VocabParallelEmbedding {
 public:
  // Tensor `name` [vocab_size, hidden_size]; "X.weight" may be quantized as layer X.
  VocabParallelEmbedding(const LoadContext& load, const ModelConfig& model, const std::string& name, int64_t vocab_size,
                         int64_t hidden_size);

  // out: [token_ids.size(), hidden_size], complete on every rank.
  void Embed(std::span<const int32_t> token_ids, float* out) const;

  // Makes room in the rank's buffers for Logits of up to `max_rows` rows.
  void Reserve(int64_t max_rows) const { weight_.Reserve(step_, max_rows); }
  // Writes this rank's columns of logits [num_rows, vocab_size]; hidden: [num_rows, hidden_size]. The other ranks write
  // theirs; a barrier has to follow before anyone reads.
  void Logits(const float* hidden, int64_t num_rows, float* logits, int64_t logits_stride) const;

 private:
  const StepContext& step_;
  Shard shard_;
  LinearWeight weight_;
};

}  // namespace vllm
