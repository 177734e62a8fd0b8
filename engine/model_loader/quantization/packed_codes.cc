#include "engine/model_loader/quantization/packed_codes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "kernels/matrix/quant_codes.h"

namespace vllm {

namespace {

constexpr float kLargestFloat16 = 65504.0f;
constexpr float kLeastLargest = 0x1p-12f;  // float16 counts in units of 2^-24 at least

// Of a row in `form`.
struct RowCodes {
  RowCodes(const CheckpointQuantMatrixView& w, const PackedQuantForm& form)
      : codes(static_cast<size_t>(w.num_columns)),
        scales(static_cast<size_t>((w.num_columns + form.scale_columns - 1) / form.scale_columns)),
        minimums(scales.size()) {}

  std::vector<uint8_t> codes;
  std::vector<float> scales, minimums;
};

// Calls f(row, room for a row) for each row; a panel at a time, so that threads do not share its lines.
template <typename F>
void ForEachRow(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, const ForEach& for_each, F&& f) {
  for_each((w.num_rows + kPanelRows - 1) / kPanelRows, [&](int64_t panel) {
    RowCodes room(w, form);
    const int64_t end = std::min(w.num_rows, (panel + 1) * kPanelRows);
    for (int64_t row = panel * kPanelRows; row < end; ++row) f(row, room);
  });
}

void Raise(std::atomic<float>& largest, float value) {
  float seen = largest.load(std::memory_order_relaxed);
  while (seen < value && !largest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

bool ScalesFit(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, const ForEach& for_each) {
  std::atomic<float> largest = 0.0f;
  std::atomic<bool> exact = true;
  ForEachRow(w, form, for_each, [&](int64_t row, RowCodes& room) {
    ReadCodes(w, form, row, nullptr, room.scales.data(), room.minimums.data());
    for (const std::vector<float>* values : {&room.scales, &room.minimums}) {
      for (const float value : *values) {
        if (Float16ToFloat(FloatToFloat16(value)) != value) exact.store(false, std::memory_order_relaxed);
        Raise(largest, std::abs(value));
      }
    }
  });
  const float most = largest.load(std::memory_order_relaxed);
  return exact.load(std::memory_order_relaxed) || (most >= kLeastLargest && most <= kLargestFloat16);
}

void PackCodes(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, const ForEach& for_each,
               PackedQuantMatrix& packed) {
  ForEachRow(w, form, for_each, [&](int64_t row, RowCodes& room) {
    ReadCodes(w, form, row, room.codes.data(), room.scales.data(), room.minimums.data());
    packed.SetRow(row, room.codes.data(), room.scales.data(), room.minimums.data());
  });
}

}  // namespace vllm
