#include "engine/layers/recurrent/recurrent_sequence.h"

#include <cstring>

namespace vllm {

void KeepDrafts(const RecurrentSequence& sequence, size_t layer, const float* rows, int64_t row_stride, int64_t width) {
  if (sequence.drafts == nullptr) return;
  std::vector<std::vector<float>>& layers = sequence.drafts->layers;
  if (layers.size() <= layer) layers.resize(layer + 1);
  std::vector<float>& kept = layers[layer];
  kept.resize(static_cast<size_t>(sequence.num_drafts * width));
  const int64_t first = sequence.first_row + sequence.num_rows - sequence.num_drafts;
  for (int64_t i = 0; i < sequence.num_drafts; ++i) {
    std::memcpy(kept.data() + i * width, rows + (first + i) * row_stride, static_cast<size_t>(width) * sizeof(float));
  }
}

}  // namespace vllm
