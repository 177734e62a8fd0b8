#include "engine/layers/alt_up/alt_up.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/layers/column_gather.h"
#include "engine/layers/for_each_row.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

namespace {

// The router decides how streams are mixed and has few rows, so --quantization does not quantize it.
ModelConfig RouterModel(ModelConfig model) {
  if (model.quantization.quantizes_at_load()) model.quantization = {};
  return model;
}

std::vector<float> LoadMatrix(const WeightSource& weights, const std::string& name, int64_t rows, int64_t columns) {
  const TensorView view = weights.Get(name, std::array{rows, columns});
  std::vector<float> values(static_cast<size_t>(rows * columns));
  kernels::ConvertToFloat(view.data.data(), view.dtype(), rows * columns, values.data());
  return values;
}

float Dot(const float* a, const float* b, int64_t count) {
  float sum = 0.0f;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

AltUp::AltUp(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const AltUpSpec& spec)
    : step_(load.step),
      spec_(spec),
      hidden_size_(model.hidden_size),
      router_(
          load, RouterModel(model), model.hidden_size,
          std::vector<OutputSlice>{{prefix + spec.prefix + "modality_router", spec.num_streams, {0, spec.num_streams}}},
          false) {
  const std::string name = prefix + spec.prefix;
  const int64_t streams = spec.num_streams;
  router_norm_ = LoadFloats(load.weights, name + "router_norm.weight", hidden_size_, {0, hidden_size_});
  for (float& weight : router_norm_) weight /= static_cast<float>(hidden_size_);
  prediction_ = LoadMatrix(load.weights, name + "prediction_coefs.weight", streams * streams, streams);
  correction_ = LoadMatrix(load.weights, name + "correction_coefs.weight", streams, streams);
  if (spec.scales_output) {
    output_scale_ = LoadFloats(load.weights, name + "correct_output_scale", hidden_size_, {0, hidden_size_});
  }
}

int64_t AltUp::scratch_floats(int64_t num_tokens) const {
  return num_tokens * spec_.num_streams + step_.threads->num_threads() * spec_.num_streams * hidden_size_;
}

void AltUp::Route(const float* x, int64_t num_tokens, float* normed, float* modalities) const {
  ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
    step_.kernels->rms_norm(x + row * hidden_size_, router_norm_.data(), static_cast<float>(spec_.norm.eps),
                            hidden_size_, normed + row * hidden_size_);
  });
  router_.Forward(normed, hidden_size_, num_tokens, modalities, spec_.num_streams);
  for (int64_t i = 0; i < num_tokens * spec_.num_streams; ++i) modalities[i] = std::tanh(modalities[i]);
}

void AltUp::Predict(int64_t num_tokens, float* normed, float* scratch, float* streams) const {
  const int64_t count = spec_.num_streams;
  float* modalities = scratch;
  float* copies = scratch + num_tokens * count;
  Route(Active(streams, num_tokens), num_tokens, normed, modalities);
  ForEachRow(step_, num_tokens, count * count * hidden_size_, [&](int64_t row, int thread) {
    const auto at = [&](int64_t stream) { return streams + (stream * num_tokens + row) * hidden_size_; };
    float* copy = copies + thread * count * hidden_size_;
    for (int64_t i = 0; i < count; ++i) std::copy_n(at(i), hidden_size_, copy + i * hidden_size_);
    for (int64_t to = 0; to < count; ++to) {
      for (int64_t from = 0; from < count; ++from) {
        const float* weights = prediction_.data() + (to * count + from) * count;
        const float factor = Dot(weights, modalities + row * count, count);
        step_.kernels->add_scaled(at(to), copy + from * hidden_size_, factor, hidden_size_);
      }
    }
  });
}

void AltUp::Correct(const float* activated, int64_t num_tokens, float* normed, float* scratch, float* streams) const {
  const int64_t count = spec_.num_streams;
  float* modalities = scratch;
  float* copies = scratch + num_tokens * count;
  Route(activated, num_tokens, normed, modalities);
  ForEachRow(step_, num_tokens, 2 * count * hidden_size_, [&](int64_t row, int thread) {
    const auto at = [&](int64_t stream) { return streams + (stream * num_tokens + row) * hidden_size_; };
    float* innovation = copies + thread * count * hidden_size_;
    std::copy_n(activated + row * hidden_size_, hidden_size_, innovation);
    step_.kernels->add_scaled(innovation, at(spec_.active_stream), -1.0f, hidden_size_);
    for (int64_t i = 0; i < count; ++i) {
      const float factor = Dot(correction_.data() + i * count, modalities + row * count, count) + 1.0f;
      step_.kernels->add_scaled(at(i), innovation, factor, hidden_size_);
    }
  });
}

void AltUp::ScaleOutput(int64_t num_tokens, float* streams, float* out) const {
  const float* active = Active(streams, num_tokens);
  ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
    const float* from = active + row * hidden_size_;
    float* to = out + row * hidden_size_;
    if (output_scale_.empty()) {
      std::copy_n(from, hidden_size_, to);
    } else {
      step_.kernels->mul_scaled(from, output_scale_.data(), 1.0f, hidden_size_, to);
    }
  });
}

void AltUp::AddToOthers(const float* delta, int64_t num_tokens, float* streams) const {
  ForEachRow(step_, num_tokens, spec_.num_streams * hidden_size_, [&](int64_t row) {
    for (int64_t i = 1; i < spec_.num_streams; ++i) {
      step_.kernels->add(streams + (i * num_tokens + row) * hidden_size_, delta + row * hidden_size_, hidden_size_);
    }
  });
}

AltUpStreams::AltUpStreams(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                           const AltUpStreamsSpec& spec)
    : step_(load.step),
      hidden_size_(model.hidden_size),
      shard_(ShardOfRows(model.hidden_size, load.step.rank(), load.step.world_size())) {
  const auto add = [&](const std::string& name, std::deque<ColumnParallelLinear>& linears) {
    for (int64_t i = 0; i + 1 < spec.num_streams; ++i) {
      linears.emplace_back(load, model, hidden_size_,
                           SplitMatrix(load.step, prefix + name + std::to_string(i), hidden_size_), false);
    }
  };
  add(spec.projections, projections_);
  add(spec.unembed_projections, unembed_projections_);
}

void AltUpStreams::Reserve(int64_t max_tokens) const {
  for (const ColumnParallelLinear& projection : projections_) projection.Reserve(max_tokens);
  for (const ColumnParallelLinear& projection : unembed_projections_) projection.Reserve(max_tokens);
}

void AltUpStreams::Project(const ColumnParallelLinear& projection, const float* x, const float* target,
                           int64_t num_tokens, float* y, const int32_t* lora_slots) const {
  // transformers' lower limit of the mean square.
  constexpr float kMinSquare = 1e-5f;
  projection.Forward(x, hidden_size_, num_tokens, y + shard_.begin, hidden_size_, lora_slots);
  AllGather(step_, {&shard_, 1}, num_tokens, hidden_size_, y);
  const auto size = static_cast<float>(hidden_size_);
  ForEachRow(step_, num_tokens, 3 * hidden_size_, [&](int64_t row) {
    const kernels::Kernels& kernels = *step_.kernels;
    float* to = y + row * hidden_size_;
    const float wanted = std::sqrt(kernels.sum_of_squares(target + row * hidden_size_, hidden_size_) / size);
    const float actual = std::sqrt(std::max(kernels.sum_of_squares(to, hidden_size_) / size, kMinSquare));
    kernels.scale(to, wanted / actual, hidden_size_);
  });
}

void AltUpStreams::Expand(const float* hidden, int64_t num_tokens, float* streams, const int32_t* lora_slots) const {
  const int64_t size = num_tokens * hidden_size_;
  std::copy_n(hidden, size, streams);
  for (size_t i = 0; i < projections_.size(); ++i) {
    Project(projections_[i], hidden, hidden, num_tokens, streams + static_cast<int64_t>(i + 1) * size, lora_slots);
  }
}

void AltUpStreams::Merge(const float* streams, int64_t num_tokens, float* delta, float* hidden,
                         const int32_t* lora_slots) const {
  const int64_t size = num_tokens * hidden_size_;
  std::copy_n(streams, size, hidden);
  for (size_t i = 0; i < unembed_projections_.size(); ++i) {
    Project(unembed_projections_[i], streams + static_cast<int64_t>(i + 1) * size, streams, num_tokens, delta,
            lora_slots);
    ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
      step_.kernels->add(hidden + row * hidden_size_, delta + row * hidden_size_, hidden_size_);
    });
  }
  const float share = 1.0f / static_cast<float>(num_streams());
  ForEachRow(step_, num_tokens, hidden_size_,
             [&](int64_t row) { step_.kernels->scale(hidden + row * hidden_size_, share, hidden_size_); });
}

}  // namespace vllm
