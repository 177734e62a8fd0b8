// ColumnParallelLinear: a linear layer y = x W^T + b, split over ranks by columns of y, as in Megatron and vLLM. Owned
// by the block or model that uses it. Each rank loads its own shard and calls Forward on its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_weight.h"
#include "engine/layers/linear/lora_linear.h"
#include "engine/layers/load_context.h"

namespace vllm {

// The rank's rows of one or more checkpoint matrices, stacked (for example q, k and v, or gate and up).
class ColumnParallelLinear {
 public:
  // `model` sets the compute type, the quantization, and whether weights are stored transposed. With `has_bias`, every
  // slice must have a bias. If WeightSource::DecidesBiases() is true, `has_bias` is ignored and the layer has exactly
  // the biases that the source contains. Throws as LinearWeight does.
  ColumnParallelLinear(const LoadContext& load, const ModelConfig& model, int64_t in_features, const LinearRows& rows,
                       bool has_bias);

  int64_t out_features() const { return weight_.num_rows(); }
  // Reserves the rank's scratch for Forward with up to `max_rows` rows.
  void Reserve(int64_t max_rows) const {
    weight_.Reserve(step_, max_rows);
    lora_.Reserve(max_rows);
  }
  // x: [num_rows, in_features], y: [num_rows, out_features()], with rows x_stride and y_stride floats apart. See
  // ModelInput for lora_slots, [num_rows] or null.
  void Forward(const float* x, int64_t x_stride, int64_t num_rows, float* y, int64_t y_stride,
               const int32_t* lora_slots = nullptr) const;

  // See LinearWeight::MultiplyInRuns. Also returns false if an adapter changes any of the rows. use: a function of an
  // OutputRun.
  template <typename F>
  bool ForwardInRuns(const float* x, int64_t x_stride, int64_t num_rows, int64_t num_slices, const int32_t* lora_slots,
                     const F& use) const {
    if (lora_.HasAdapters(lora_slots, num_rows)) return false;
    // std::function stores a single reference without allocating memory.
    return weight_.MultiplyInRuns(step_, bias(), x, x_stride, num_rows, num_slices,
                                  [&use](const OutputRun& run) { use(run); });
  }
  void ReserveRuns(int64_t max_rows, int64_t num_slices) const {
    LinearWeight::ReserveRuns(step_, max_rows, num_slices);
  }

  // For GatheredLinear: the matrix if the layer has only one, else null; [out_features()] or null; and whether an
  // adapter changes any of the rows.
  const LinearMatrix* matrix() const { return weight_.matrix(); }
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }
  bool HasAdapters(const int32_t* lora_slots, int64_t num_rows) const {
    return lora_.HasAdapters(lora_slots, num_rows);
  }

 private:
  const StepContext& step_;
  LinearWeight weight_;
  std::vector<float> bias_;
  LoRALinear lora_;
};

}  // namespace vllm
