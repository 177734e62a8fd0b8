#include "engine/layers/linear/position_embedding.h"

#include <array>

#include "engine/layers/for_each_row.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

PositionEmbedding::PositionEmbedding(const LoadContext& load, const std::string& name, int64_t num_positions,
                                     int64_t offset, int64_t hidden_size)
    : step_(load.step),
      hidden_size_(hidden_size),
      table_(std::move(
          load.memory.Buffers(name)({static_cast<size_t>(num_positions * hidden_size) * sizeof(float)}).front())) {
  const TensorView view = load.weights.Get(name, std::array{offset + num_positions, hidden_size});
  if (table_.is_filled()) return;
  for (int64_t i = 0; i < num_positions; ++i) {
    kernels::ConvertToFloat(view.Row(offset + i), view.dtype(), hidden_size, table_.as<float>() + i * hidden_size);
  }
}

void PositionEmbedding::AddTo(std::span<const int64_t> positions, float* rows) const {
  ForEachRow(step_, static_cast<int64_t>(positions.size()), hidden_size_, [&](int64_t row) {
    const int64_t position = positions[static_cast<size_t>(row)];
    step_.kernels->add(rows + row * hidden_size_, table_.as<float>() + position * hidden_size_, hidden_size_);
  });
}

}  // namespace vllm
