// RecurrentMixer: the part of a decoder layer that mixes tokens through a recurrent state, in place of attention.
// Owned by a DecoderLayer. Built at load, then used by the rank's thread. All ranks call the same functions in the same
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/layers/attention/attention.h"
#include "engine/layers/recurrent/recurrent_sequence.h"

namespace vllm {

class RecurrentMixer {
 public:
  virtual ~RecurrentMixer() = default;

  virtual RecurrentStateSpec state() const = 0;
  // Returns the number of floats in the scratch of Forward.
  virtual int64_t scratch_floats(int64_t num_tokens) const = 0;
  // Reserves the rank's scratch for Forward with up to `max_tokens` tokens.
  virtual void Reserve(int64_t max_tokens) const = 0;
  // x, out: [num_tokens, hidden_size]; scratch: [scratch_floats(num_tokens)]; lora_slots: [num_tokens] or null. Moves
  // the states of the sequences, which are in `cache`, and writes their checkpoints.
  virtual void Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x,
                       int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) = 0;
};

}  // namespace vllm
