// ShortConv: the gated short convolution of LFM2 (arXiv 2511.23404): out_proj(C * conv(B * x)), where in_proj gives B,
// C and x. Its recurrent state is the window of the convolution. Channels are split over the ranks. Owned by a
// DecoderLayer. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/load_context.h"
#include "engine/layers/recurrent/conv_mixer.h"

namespace vllm {

struct ShortConvSpec {
  int64_t num_taps = 0;
  bool has_bias = false;  // of in_proj, the convolution and out_proj
};

class ShortConv final : public ConvMixer {
 public:
  // `layer`: among the layers with recurrent state. Throws as ColumnParallelLinear does.
  ShortConv(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
            const ShortConvSpec& spec);

  RecurrentStateSpec state() const override { return {.window_floats = conv().window_floats()}; }
  int64_t scratch_floats(int64_t num_tokens) const override { return num_tokens * 4 * inner(); }
  void Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x, int64_t num_tokens,
               float* scratch, float* out, const int32_t* lora_slots) override;

 private:
  static Options MixerOptions(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                              const ShortConvSpec& spec);
};

}  // namespace vllm
