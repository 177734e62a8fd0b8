// RecurrentStateLayout: where the recurrent state of a sequence lies in blocks of the KV cache. Some layers keep a
// state of fixed size instead of K and V for every token: the inputs of the last few tokens (the window of a causal
// convolution) and one matrix per head. A state takes num_blocks() blocks, which need not be adjacent. Each window and
// each matrix is contiguous in one of them. All ranks have the same layout. Plain values and pure functions; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vllm {

// The state of one layer on this rank, in float32.
struct RecurrentStateSpec {
  int64_t window_floats = 0;  // [num_taps - 1, num_channels], oldest token first
  int64_t num_heads = 0;
  int64_t head_floats = 0;  // [key_dim, value_dim] of each head

  int64_t num_floats() const { return window_floats + num_heads * head_floats; }
};

struct RecurrentStatePlace {
  size_t block = 0;   // index among the blocks of the state
  int64_t bytes = 0;  // offset in that block
};

class RecurrentStateLayout {
 public:
  RecurrentStateLayout() = default;
  // REQUIRES: block_bytes >= MinBlockBytes(layers), or there are no layers.
  RecurrentStateLayout(const std::vector<RecurrentStateSpec>& layers, int64_t block_bytes);

  // Returns the size of the smallest block that can hold every window and every matrix; 0: there are none.
  static int64_t MinBlockBytes(const std::vector<RecurrentStateSpec>& layers);

  // 0: the model has no recurrent state.
  int64_t num_blocks() const { return num_blocks_; }
  // `layer` is an index among the layers with recurrent state.
  RecurrentStatePlace window(size_t layer) const { return layers_[layer].window; }
  RecurrentStatePlace head(size_t layer, int64_t head) const { return layers_[layer].heads[static_cast<size_t>(head)]; }

 private:
  struct Layer {
    RecurrentStatePlace window;
    std::vector<RecurrentStatePlace> heads;
  };
  std::vector<Layer> layers_;
  int64_t num_blocks_ = 0;
};

}  // namespace vllm
