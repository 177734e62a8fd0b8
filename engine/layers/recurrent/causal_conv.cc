#include "engine/layers/recurrent/causal_conv.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/layers/norm.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

namespace {

// More than any model has; a limit on the memory for the addresses of the taps.
constexpr int64_t kMaxTaps = 64;

// Returns `name`.weight, [total, num_taps]. Hugging Face checkpoints store it as [total, 1, num_taps].
TensorView ConvWeight(const WeightSource& weights, const std::string& name, int64_t total, int64_t num_taps) {
  const std::optional<std::vector<int64_t>> shape = weights.ShapeOf(name);
  if (shape && shape->size() == 3) return weights.Get(name, std::array{total, int64_t{1}, num_taps});
  return weights.Get(name, std::array{total, num_taps});
}

}  // namespace

SequenceInputs::SequenceInputs(const RecurrentSequence& sequence, size_t layer, const Memory& memory)
    : memory_(memory),
      accepted_(sequence.num_accepted > 0 ? sequence.drafts->layers[layer].data() : nullptr),
      num_accepted_(sequence.num_accepted),
      num_step_rows_(sequence.num_rows) {
  if (sequence.state_position() == 0) memory_.window = nullptr;
}

const float* SequenceInputs::Row(int64_t i) const {
  if (i >= num_accepted_) return memory_.rows + (i - num_accepted_) * memory_.row_stride;
  if (i >= 0) return accepted_ + i * memory_.width;
  if (memory_.window == nullptr) return nullptr;
  return memory_.window + (memory_.num_taps - 1 + i) * memory_.num_channels;
}

CausalConv::CausalConv(const LoadContext& load, const Options& options)
    : num_taps_(options.num_taps), activation_(options.activation) {
  if (num_taps_ < 1 || num_taps_ > kMaxTaps) {
    throw ModelError("cannot load model " + Escape(load.config.model.model) + ": the kernel of " +
                     Escape(options.name) + " must have 1 to " + std::to_string(kMaxTaps) + " taps (" +
                     std::to_string(num_taps_) + ")");
  }
  for (const Shard& part : options.parts) num_channels_ += part.count;
  weight_.resize(static_cast<size_t>(num_taps_ * num_channels_));
  const TensorView view = ConvWeight(load.weights, options.name + ".weight", options.total, num_taps_);
  const kernels::DType dtype = view.dtype();
  std::vector<float> taps(static_cast<size_t>(num_taps_));
  int64_t channel = 0;
  for (const Shard& part : options.parts) {
    for (int64_t i = part.begin; i < part.begin + part.count; ++i, ++channel) {
      kernels::ConvertToFloat(view.data.data() + static_cast<size_t>(i * num_taps_) * SizeOf(dtype), dtype, num_taps_,
                              taps.data());
      for (int64_t t = 0; t < num_taps_; ++t) {
        weight_[static_cast<size_t>(t * num_channels_ + channel)] = taps[static_cast<size_t>(t)];
      }
    }
  }
  if (!options.has_bias) return;
  for (const Shard& part : options.parts) {
    const std::vector<float> bias = LoadFloats(load.weights, options.name + ".bias", options.total, part);
    bias_.insert(bias_.end(), bias.begin(), bias.end());
  }
}

void CausalConv::Row(const StepContext& step, const SequenceInputs& inputs, int64_t i, int64_t first, int64_t count,
                     float* out) const {
  std::array<const float*, kMaxTaps> taps;
  for (int64_t t = 0; t < num_taps_; ++t) {
    const float* const row = inputs.Row(i - (num_taps_ - 1) + t);
    taps[static_cast<size_t>(t)] = row == nullptr ? nullptr : row + first;
  }
  step.kernels->recurrent->causal_conv(taps.data(), num_taps_, weight_.data() + first, num_channels_,
                                       bias_.empty() ? nullptr : bias_.data() + first, count, out);
  if (activation_) step.kernels->activation(*activation_, out, nullptr, count, out);
}

void CausalConv::SaveWindow(const SequenceInputs& inputs, int64_t i, float* window) const {
  const size_t bytes = static_cast<size_t>(num_channels_) * sizeof(float);
  // In ascending order, because a row may come from a later place in the same window.
  for (int64_t t = 0; t < num_taps_ - 1; ++t) {
    const float* const row = inputs.Row(i - (num_taps_ - 1) + t);
    float* const to = window + t * num_channels_;
    if (row == nullptr) {
      std::memset(to, 0, bytes);
    } else if (row != to) {
      std::memcpy(to, row, bytes);
    }
  }
}

void CausalConv::SaveWindows(const RecurrentSequence& sequence, size_t layer, const SequenceInputs& inputs,
                             KVCache& cache) const {
  for (const StateCheckpoint& checkpoint : sequence.checkpoints) {
    SaveWindow(inputs, checkpoint.position - sequence.state_position(), cache.window(layer, checkpoint.block_ids));
  }
  SaveWindow(inputs, sequence.end_position() - sequence.state_position(), cache.window(layer, sequence.block_ids));
}

}  // namespace vllm
