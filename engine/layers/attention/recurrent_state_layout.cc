#include "engine/layers/attention/recurrent_state_layout.h"

#include <algorithm>

#include "kernels/threading/check.h"

namespace vllm {

namespace {

// Windows and matrices begin at cache lines.
constexpr int64_t kAlignment = 64;

int64_t BytesOf(int64_t num_floats) {
  return (num_floats * static_cast<int64_t>(sizeof(float)) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

int64_t RecurrentStateLayout::MinBlockBytes(const std::vector<RecurrentStateSpec>& layers) {
  int64_t bytes = 0;
  for (const RecurrentStateSpec& layer : layers) {
    bytes = std::max({bytes, BytesOf(layer.window_floats), BytesOf(layer.head_floats)});
  }
  return bytes;
}

RecurrentStateLayout::RecurrentStateLayout(const std::vector<RecurrentStateSpec>& layers, int64_t block_bytes) {
  VLLM_CHECK(block_bytes >= MinBlockBytes(layers));
  int64_t used = block_bytes;  // of the last block
  const auto place = [&](int64_t num_floats) {
    const int64_t bytes = BytesOf(num_floats);
    if (used + bytes > block_bytes) {
      ++num_blocks_;
      used = 0;
    }
    const RecurrentStatePlace result{static_cast<size_t>(num_blocks_ - 1), used};
    used += bytes;
    return result;
  };
  for (const RecurrentStateSpec& spec : layers) {
    Layer& layer = layers_.emplace_back();
    layer.window = place(spec.window_floats);
    for (int64_t head = 0; head < spec.num_heads; ++head) layer.heads.push_back(place(spec.head_floats));
  }
}

}  // namespace vllm
