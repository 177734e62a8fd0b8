#include "engine/model_loader/quantization/packed_codes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "kernels/matrix/quant_codes.h"

namespace vllm {

namespace {

constexpr float kLargestFloat16 = 65504.0f;
// If the largest value is at least this, the rounding error of float16 subnormals (2^-25) is at most 2^-13 of it.
constexpr float kMinLargest = 0x1p-12f;

// Scratch memory for the codes, scales and minimums of one row.
struct RowScratch {
  RowScratch(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form)
      : codes(static_cast<size_t>(w.num_columns)),
        scales(static_cast<size_t>((w.num_columns + form.scale_columns - 1) / form.scale_columns)),
        minimums(scales.size()) {}

  std::vector<uint8_t> codes;
  std::vector<float> scales, minimums;
};

// Calls f(row, scratch) for each row. Each task handles a whole panel, so that threads do not share the panel's cache
// lines.
template <typename F>
void ForEachCodeRow(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
                    const ForEach& for_each, F&& f) {
  for_each((w.num_rows + kernels::kPanelRows - 1) / kernels::kPanelRows, [&](int64_t panel) {
    RowScratch scratch(w, form);
    const int64_t end = std::min(w.num_rows, (panel + 1) * kernels::kPanelRows);
    for (int64_t row = panel * kernels::kPanelRows; row < end; ++row) f(row, scratch);
  });
}

void RaiseTo(std::atomic<float>& largest, float value) {
  float seen = largest.load(std::memory_order_relaxed);
  while (seen < value && !largest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

bool ScalesFit(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
               const ForEach& for_each) {
  std::atomic<float> largest = 0.0f;
  std::atomic<bool> exact = true;
  ForEachCodeRow(w, form, for_each, [&](int64_t row, RowScratch& scratch) {
    kernels::ReadCodes(w, form, row, nullptr, scratch.scales.data(), scratch.minimums.data());
    for (const std::vector<float>* values : {&scratch.scales, &scratch.minimums}) {
      for (const float value : *values) {
        if (kernels::Float16ToFloat(kernels::FloatToFloat16(value)) != value)
          exact.store(false, std::memory_order_relaxed);
        RaiseTo(largest, std::abs(value));
      }
    }
  });
  const float largest_value = largest.load(std::memory_order_relaxed);
  return exact.load(std::memory_order_relaxed) || (largest_value >= kMinLargest && largest_value <= kLargestFloat16);
}

void PackCodes(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
               const ForEach& for_each, kernels::PackedQuantMatrix& packed) {
  ForEachCodeRow(w, form, for_each, [&](int64_t row, RowScratch& scratch) {
    kernels::ReadCodes(w, form, row, scratch.codes.data(), scratch.scales.data(), scratch.minimums.data());
    packed.SetRow(row, scratch.codes.data(), scratch.scales.data(), scratch.minimums.data());
  });
}

}  // namespace vllm
