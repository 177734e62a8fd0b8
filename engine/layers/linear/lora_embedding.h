// LoRAEmbedding: what the LoRA adapters add to the token embedding. Replicated on every rank. Owned by the
// DecoderModel. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_matrix.h"
#include "engine/layers/load_context.h"
#include "engine/lora/lora_modules.h"

namespace vllm {

class LoRAEmbedding {
 public:
  // Takes the modules of the embedding `name`, without ".weight", from load.lora, which may be null. Throws ModelError
  // if a module does not fit a weight [vocab_size, hidden_size].
  LoRAEmbedding(const LoadContext& load, const std::string& name, int64_t vocab_size, int64_t hidden_size);

  // Adds to each row of `rows`, [token_ids.size(), hidden_size], the part of adapter slots[row], nothing if it is below
  // 0. `slots` may be null.
  void Add(const StepContext& step, const int32_t* slots, std::span<const int32_t> token_ids, float* rows) const;

 private:
  struct Adapter {
    int64_t rank = 0;      // 0: does not change the embedding
    std::vector<float> a;  // [vocab_size, rank], multiplied by the scale
    std::vector<float> b;  // [rank, hidden_size]
  };
  int64_t hidden_size_;
  std::vector<Adapter> adapters_;  // by slot; empty: none changes the embedding
};

}  // namespace vllm
