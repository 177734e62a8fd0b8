#include "kernels/matrix/packed_activations.h"

namespace vllm::kernels {

namespace {

void* GrowTo(AlignedBuffer& buffer, int64_t size_bytes) {
  const auto size = static_cast<size_t>(size_bytes);
  if (buffer.size_bytes() < size) buffer = AlignedBuffer(size);
  return buffer.data();
}

}  // namespace

PackedActivationsView PackedActivations::BFloat16(int64_t num_rows, int64_t num_columns, int64_t tile_rows,
                                                  int64_t columns_per_unit) {
  PackedActivationsView view{num_rows, num_columns, (num_columns + 1) / 2 * 2 / columns_per_unit};
  view.tile_rows = tile_rows;
  view.columns_per_unit = columns_per_unit;
  view.units = static_cast<uint32_t*>(GrowTo(units_, num_rows * view.num_units * 4));
  return view;
}

PackedActivationsView PackedActivations::Int8(int64_t num_rows, int64_t num_columns, const CodeSums& code_sums,
                                              int64_t tile_rows) {
  PackedActivationsView view{num_rows, num_columns};
  view.num_units = (num_columns + kBlockColumns - 1) / kBlockColumns * (kBlockColumns / 4);
  view.code_sums = code_sums;
  view.tile_rows = tile_rows;
  view.units = static_cast<uint32_t*>(GrowTo(units_, num_rows * view.num_units * 4));
  view.scales = static_cast<float*>(GrowTo(scales_, num_rows * view.num_scales() * 4));
  view.offsets = static_cast<int32_t*>(GrowTo(offsets_, num_rows * view.num_offsets() * 4));
  if (code_sums.keep_sums) view.sums = static_cast<float*>(GrowTo(sums_, num_rows * view.num_offsets() * 4));
  return view;
}

}  // namespace vllm::kernels
