// Model: one rank's part of a decoder. Owned by the rank's Worker; built and called on the rank's thread. All ranks
// call the same functions in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/layers/attention/attention.h"
#include "engine/layers/load_context.h"
#include "engine/layers/recurrent/recurrent_sequence.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// The tokens of all requests of one step, concatenated. Borrowed for the call.
struct ModelInput {
  std::span<const int32_t> token_ids;  // [num_tokens]
  std::span<const int64_t> positions;  // [num_tokens]
  const AttentionMetadata& attention;
  const std::vector<RecurrentSequence>& recurrent;  // the sequences of the step, if the model has recurrent state
  // [num_tokens] the LoRA adapter of each token, an index in VllmConfig::lora.adapters, or -1 for none. Null: no token
  // has an adapter.
  const int32_t* lora_slots = nullptr;
  std::span<const int64_t> token_type_ids = {};  // [num_tokens] if the model has embeddings of token types
};

class Model {
 public:
  virtual ~Model() = default;

  // Returns the layers on this rank that have a KV cache or a recurrent state.
  virtual const CachedLayers& Layers() const = 0;

  // Reserves the rank's scratch for Forward with up to `max_tokens` tokens and ComputeLogits with up to
  // `max_logits_rows` rows. Returns the bytes of the model's own step buffers, without those of the StepContext's
  // workspace.
  virtual size_t ReserveScratch(int64_t /*max_tokens*/, int64_t /*max_logits_rows*/) { return 0; }

  // Writes hidden [num_tokens, hidden_size], after the final norm. REQUIRES: num_tokens <= max_num_batched_tokens.
  virtual void Forward(const ModelInput& input, KVCache& cache, float* hidden) = 0;

  // Writes this rank's columns of logits [num_rows, vocab_size], with rows logits_stride floats apart; hidden:
  // [num_rows, hidden_size]; lora_slots: [num_rows] as in ModelInput, or null. The rows are complete after a barrier of
  // all ranks.
  virtual void ComputeLogits(const float* hidden, int64_t num_rows, float* logits, int64_t logits_stride,
                             const int32_t* lora_slots) = 0;
};

}  // namespace vllm
