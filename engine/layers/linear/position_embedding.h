// PositionEmbedding: one learned vector per position, replicated on every rank. Owned by the DecoderModel. Built at
// load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/matrix/aligned_buffer.h"

#include "engine/layers/load_context.h"

namespace vllm {

class PositionEmbedding {
 public:
  // Reads tensor `name` [offset + num_positions, hidden_size]. Row offset + p belongs to position p. Throws ModelError
  // if the tensor is missing or has the wrong shape or type.
  PositionEmbedding(const LoadContext& load, const std::string& name, int64_t num_positions, int64_t offset,
                    int64_t hidden_size);

  // Adds the positions' vectors to rows [positions.size(), hidden_size]. REQUIRES: positions are below num_positions.
  void AddTo(std::span<const int64_t> positions, float* rows) const;

 private:
  const StepContext& step_;
  int64_t hidden_size_;
  kernels::AlignedBuffer table_;  // [num_positions, hidden_size] float32
};

}  // namespace vllm
