// VocabParallelEmbedding: the rank's rows of the token embedding or of the output projection. If the checkpoint ties
// the two, one object serves as both. Owned by the DecoderModel. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/layers/linear/linear_weight.h"
#include "engine/layers/load_context.h"

namespace vllm {

class VocabParallelEmbedding {
 public:
  // Reads tensor `name` [vocab_size, hidden_size]. If `name` is "X.weight", the checkpoint may instead have the tensors
  // of a quantized layer X. Throws as LinearWeight does.
  VocabParallelEmbedding(const LoadContext& load, const ModelConfig& model, const std::string& name, int64_t vocab_size,
                         int64_t hidden_size);

  // Writes the tokens' vectors to out, [token_ids.size(), hidden_size], complete on every rank.
  void Embed(std::span<const int32_t> token_ids, float* out) const;

  // Reserves the rank's scratch for Embed, and for Logits with up to `max_rows` rows.
  void Reserve(int64_t max_rows) const { weight_.Reserve(step_, max_rows); }
  // Writes this rank's columns of logits [num_rows, vocab_size], with rows logits_stride floats apart; hidden:
  // [num_rows, hidden_size]. The other ranks write the other columns, so a barrier must come before any rank reads
  // the rows.
  void Logits(const float* hidden, int64_t num_rows, float* logits, int64_t logits_stride) const;

  // The rows of this rank.
  const Shard& shard() const { return shard_; }

 private:
  const StepContext& step_;
  Shard shard_;
  LinearWeight weight_;
};

}  // namespace vllm
