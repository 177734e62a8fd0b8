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
        minimums(scales.size()),
        super_scales(static_cast<size_t>((w.num_columns + kernels::kSuperColumns - 1) / kernels::kSuperColumns)),
        super_minimums(super_scales.size()) {}

  kernels::QuantRowBuffers buffers() {
    return {codes.data(), scales.data(), minimums.data(), super_scales.data(), super_minimums.data()};
  }
  kernels::QuantRow row() const {
    return {codes.data(), scales.data(), minimums.data(), super_scales.data(), super_minimums.data()};
  }

  std::vector<uint8_t> codes;
  std::vector<float> scales, minimums, super_scales, super_minimums;
};

// Calls f(panel, begin, end, scratch) for the rows of each panel. Threads do not share a panel's cache lines.
template <typename F>
void ForEachPanel(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
                  const ForEach& for_each, F&& f) {
  for_each((w.num_rows + kernels::kPanelRows - 1) / kernels::kPanelRows, [&](int64_t panel) {
    RowScratch scratch(w, form);
    f(panel, panel * kernels::kPanelRows, std::min(w.num_rows, (panel + 1) * kernels::kPanelRows), scratch);
  });
}

void RaiseTo(std::atomic<float>& largest, float value) {
  float seen = largest.load(std::memory_order_relaxed);
  while (seen < value && !largest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void ScaleRange::Add(const ScaleRange& other) {
  is_exact = is_exact && other.is_exact;
  largest = std::max(largest, other.largest);
}

bool ScaleRange::Fits() const { return is_exact || (largest >= kMinLargest && largest <= kLargestFloat16); }

ScaleRange RangeOfScales(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
                         const ForEach& for_each) {
  if (form.has_super_scales) return {};  // products of integers and float16 numbers, as in the checkpoint
  std::atomic<float> largest = 0.0f;
  std::atomic<bool> is_exact = true;
  ForEachPanel(w, form, for_each, [&](int64_t /*panel*/, int64_t begin, int64_t end, RowScratch& scratch) {
    for (int64_t row = begin; row < end; ++row) {
      kernels::QuantRowBuffers buffers = scratch.buffers();
      buffers.codes = nullptr;
      kernels::ReadCodes(w, form, row, buffers);
      for (const std::vector<float>* values : {&scratch.scales, &scratch.minimums}) {
        for (const float value : *values) {
          if (kernels::Float16ToFloat(kernels::FloatToFloat16(value)) != value)
            is_exact.store(false, std::memory_order_relaxed);
          RaiseTo(largest, std::abs(value));
        }
      }
    }
  });
  return {is_exact.load(std::memory_order_relaxed), largest.load(std::memory_order_relaxed)};
}

void PackCodes(const kernels::CheckpointQuantMatrixView& w, const kernels::PackedQuantForm& form,
               const ForEach& for_each, int64_t first_row, const std::function<bool(int64_t panel)>& claim,
               kernels::PackedQuantMatrix& packed) {
  ForEachPanel(w, form, for_each, [&](int64_t panel, int64_t begin, int64_t end, RowScratch& scratch) {
    if (!claim(first_row / kernels::kPanelRows + panel)) return;
    for (int64_t row = begin; row < end; ++row) {
      kernels::ReadCodes(w, form, row, scratch.buffers());
      packed.SetRow(first_row + row, scratch.row());
    }
  });
}

}  // namespace vllm
