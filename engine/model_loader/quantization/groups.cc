#include "engine/model_loader/quantization/groups.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace vllm {
namespace {

// Number of rows whose codes are read together. In GPTQ and AWQ layouts, adjacent rows share a cache line.
constexpr int64_t kRowsPerCall = 32;

struct GroupLayout {
  std::vector<int32_t> groups;          // groups that contain columns, ascending
  std::vector<int32_t> group_of_chunk;  // [column_order.size() / 16], index into groups
  std::vector<int32_t> column_order;    // stored column -> column of the matrix; -1: padding
};

GroupLayout MakeLayout(const std::vector<int32_t>& group) {
  GroupLayout layout;
  std::vector<int32_t> order(group.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return group[static_cast<size_t>(a)] < group[static_cast<size_t>(b)]; });
  const auto pad = [&](size_t multiple) {
    while (layout.column_order.size() % multiple != 0) layout.column_order.push_back(-1);
  };
  for (const int32_t column : order) {
    const int32_t g = group[static_cast<size_t>(column)];
    if (layout.groups.empty() || layout.groups.back() != g) {
      pad(static_cast<size_t>(kernels::kGroupChunk));
      layout.groups.push_back(g);
    }
    if (layout.column_order.size() % static_cast<size_t>(kernels::kGroupChunk) == 0) {
      layout.group_of_chunk.push_back(static_cast<int32_t>(layout.groups.size()) - 1);
    }
    layout.column_order.push_back(column);
  }
  pad(static_cast<size_t>(kernels::kQuantColumns));
  while (layout.group_of_chunk.size() * static_cast<size_t>(kernels::kGroupChunk) < layout.column_order.size()) {
    layout.group_of_chunk.push_back(layout.group_of_chunk.back());
  }
  return layout;
}

bool IsIdentity(const std::vector<int32_t>& order, int64_t count) {
  if (static_cast<int64_t>(order.size()) != count) return false;
  for (size_t k = 0; k < order.size(); ++k) {
    if (order[k] != static_cast<int32_t>(k)) return false;
  }
  return true;
}

}  // namespace

CheckpointMatrix StoreGroups(const GroupSource& source, const MatrixRows& rows, const kernels::BufferSource& buffers,
                             const ForEach& for_each) {
  GroupLayout layout = MakeLayout(source.group_of_column);
  const std::vector<int32_t> order = layout.column_order;
  const auto num_groups = static_cast<int64_t>(layout.groups.size());
  CheckpointMatrix result;
  if (!IsIdentity(order, rows.in_features)) result.column_order = order;
  result.matrix = kernels::CheckpointQuantMatrix(source.format, rows.num_rows, static_cast<int64_t>(order.size()),
                                                 {.group_of_chunk = layout.group_of_chunk,
                                                  .num_groups = num_groups,
                                                  .scale_type = source.scale_type,
                                                  .has_zeros = static_cast<bool>(source.zero),
                                                  .zero_point = source.zero_point,
                                                  .has_float_zeros = static_cast<bool>(source.float_zero),
                                                  .table = source.table,
                                                  .scale_table = source.scale_table,
                                                  .has_scale_per_input_row = source.has_scale_per_input_row},
                                                 buffers);
  if (result.matrix.is_filled()) return result;
  for_each((rows.num_rows + kRowsPerCall - 1) / kRowsPerCall, [&](int64_t call) {
    const int64_t begin = call * kRowsPerCall;
    const int64_t count = std::min(kRowsPerCall, rows.num_rows - begin);
    std::vector<uint8_t> codes(static_cast<size_t>(count * rows.in_features));
    std::vector<uint8_t> ordered(order.size());
    source.codes(rows.row_begin + begin, count, codes.data());
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t* row = codes.data() + i * rows.in_features;
      for (size_t k = 0; k < order.size(); ++k) ordered[k] = order[k] < 0 ? uint8_t{0} : row[order[k]];
      result.matrix.SetCodes(begin + i, ordered.data());
      for (int64_t g = 0; g < num_groups; ++g) {
        const int32_t group = layout.groups[static_cast<size_t>(g)];
        std::memcpy(result.matrix.scale(begin + i, g), source.scale(rows.row_begin + begin + i, group),
                    static_cast<size_t>(result.matrix.view().scale_bytes()));
        if (source.float_zero) {
          *result.matrix.float_zero(begin + i, g) = source.float_zero(rows.row_begin + begin + i, group);
        }
        if (source.zero) {
          *result.matrix.zero(begin + i, g) = static_cast<int16_t>(source.zero(rows.row_begin + begin + i, group));
        }
      }
    }
  });
  return result;
}

}  // namespace vllm
