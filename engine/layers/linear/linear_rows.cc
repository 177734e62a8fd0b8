#include "engine/layers/linear/linear_rows.h"

#include <algorithm>

#include "kernels/threading/check.h"

namespace vllm {

LinearRows SplitMatrix(const StepContext& step, const std::string& name, int64_t num_rows) {
  return SplitRows(step, [&](int rank, int world_size) {
    return std::vector<OutputSlice>{{name, num_rows, ShardOfRows(num_rows, rank, world_size)}};
  });
}

std::vector<Shard> StackedRanges(const std::vector<OutputSlice>& all, const std::vector<OutputSlice>& own) {
  std::vector<Shard> ranges;
  for (const OutputSlice& slice : own) {
    const int64_t end = slice.shard.begin + slice.shard.count;
    for (int64_t row = slice.shard.begin; row < end;) {
      int64_t stacked = 0;
      const auto found = std::find_if(all.begin(), all.end(), [&](const OutputSlice& whole) {
        if (whole.name == slice.name && whole.shard.begin <= row && row < whole.shard.begin + whole.shard.count) {
          return true;
        }
        stacked += whole.shard.count;
        return false;
      });
      VLLM_CHECK(found != all.end());
      const int64_t count = std::min(end, found->shard.begin + found->shard.count) - row;
      const int64_t begin = stacked + row - found->shard.begin;
      if (!ranges.empty() && ranges.back().begin + ranges.back().count == begin) {
        ranges.back().count += count;
      } else {
        ranges.push_back({begin, count});
      }
      row += count;
    }
  }
  return ranges;
}

}  // namespace vllm
