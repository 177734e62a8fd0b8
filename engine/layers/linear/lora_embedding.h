// LoRAEmbedding: what the LoRA adapters add to the token embedding. Replicated on every rank. Owned by the
// DecoderModel; used on the rank's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_matrix.h"
#include "engine/layers/load_context.h"
#include "engine/lora/lora_layers.h"

namespace vllm {

class LoRAEmbedding final : public LoRALayer {
 public:
  // Adapters change the embedding `name`, without ".weight", whose weight is [vocab_size, hidden_size]. Registers
  // itself with load.lora, which may be null.
  LoRAEmbedding(const LoadContext& load, std::string name, int64_t vocab_size, int64_t hidden_size);
  LoRAEmbedding(const LoRAEmbedding&) = delete;
  LoRAEmbedding& operator=(const LoRAEmbedding&) = delete;

  void Take(size_t slot, LoRAModules& modules) override;
  void Load(size_t slot) override;
  void Unload(size_t slot) override;

  // Adds to each row of `rows`, [token_ids.size(), hidden_size], the part of adapter slots[row], nothing if it is below
  // 0. `slots` may be null.
  void Add(const StepContext& step, const int32_t* slots, std::span<const int32_t> token_ids, float* rows) const;

 private:
  struct Adapter {
    int64_t rank = 0;      // 0: is not loaded or does not change the embedding
    std::vector<float> a;  // [vocab_size, rank], multiplied by the scale
    std::vector<float> b;  // [rank, hidden_size]
  };
  std::string name_;
  int64_t vocab_size_, hidden_size_;
  std::vector<const LoRAModule*> taken_;  // by slot; null: does not change the embedding
  std::vector<Adapter> adapters_;         // by slot
};

}  // namespace vllm
